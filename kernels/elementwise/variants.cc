#include <optional>
#include <utility>

#include "kernels/cuda_choice.h"
#include "kernels/elementwise/kernels.h"

namespace warpline {
namespace {

std::optional<ElementwisePlan> PlanOf(const ElementwiseProblem& problem, const Operands& operands) {
  return PlanElementwise(problem, operands.in[0], operands.in[1], operands.out);
}

cudaError_t LaunchPlan(const ElementwiseProblem& problem, const ElementwisePlan& plan,
                       const Operands& operands, cudaStream_t stream) {
  switch (problem.op) {
    case ElementwiseOp::kCast:
      return LaunchCast(problem, plan, operands, stream);
    case ElementwiseOp::kScale:
      return LaunchScale(problem, plan, operands, stream);
    case ElementwiseOp::kAdd:
      return LaunchAdd(problem, plan, operands, stream);
  }
  return cudaErrorNotSupported;
}

cudaError_t LaunchPacks(const ElementwiseProblem& problem, const Operands& operands,
                        const CudaContext& context, cudaStream_t stream) {
  if (context.plan != nullptr) {
    return LaunchPlan(problem, std::get<ElementwisePlan>(context.plan->arguments), operands, stream);
  }
  const std::optional<ElementwisePlan> plan = PlanOf(problem, operands);
  return plan.has_value() ? LaunchPlan(problem, *plan, operands, stream) : cudaErrorNotSupported;
}

// The older name of both rows.
constexpr std::string_view kGroup = "elementwise";

constexpr CudaVariant<ElementwiseProblem> kVariants[] = {
    {.name = "packs",
     .summary = "16 bytes a load or store, a pack of elements a thread, rows broadcast as vectors",
     .reproducible = true,
     .supports_dtype = IsReal,
     .supports = [](const ElementwiseProblem& problem,
                    const DeviceTraits&) { return PlanOf(problem, {}).has_value(); },
     .workspace_bytes = [](const ElementwiseProblem&, const DeviceTraits&) -> std::size_t { return 0; },
     .launch = LaunchPacks,
     .group = kGroup,
     .step = 2},
    {.name = "naive",
     .summary = "an element a load, types decided at run time",
     .reproducible = true,
     .supports_dtype = IsReal,
     .supports = [](const ElementwiseProblem&, const DeviceTraits&) { return true; },
     .workspace_bytes = [](const ElementwiseProblem&, const DeviceTraits&) -> std::size_t { return 0; },
     .launch = LaunchElementwiseNaive,
     .cost = [](const ElementwiseProblem&, const DeviceTraits&) -> VariantCost { return {.transfer = 4}; },
     .group = kGroup,
     .step = 1},
};

}  // namespace

std::span<const CudaVariant<ElementwiseProblem>> CudaElementwiseVariants() { return kVariants; }

CudaChoice<ElementwiseProblem> Choose(const ElementwiseProblem& problem, std::string_view variant,
                                      const DeviceTraits& traits, const Operands& operands) {
  const auto& packs = kVariants[0];
  if (!variant.empty() && !Answers(packs, variant)) {
    return ChooseInOrder(CudaElementwiseVariants(), problem, variant, traits);
  }
  if (std::optional<ElementwisePlan> plan = PlanOf(problem, operands); plan.has_value()) {
    return {.row = &packs, .configuration = 0, .plan = {*std::move(plan)}};
  }
  if (variant == packs.name) return {};
  return {.row = &kVariants[1]};
}

}  // namespace warpline
