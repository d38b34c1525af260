#include "kernels/cuda_variants.h"
#include "kernels/elementwise/kernels.h"

namespace warpline {
namespace {

cudaError_t LaunchPacks(const ElementwiseProblem& problem, const Operands& operands,
                        const CudaContext& context, cudaStream_t stream) {
  switch (problem.op) {
    case ElementwiseOp::kCast:
      return LaunchCast(problem, operands, context, stream);
    case ElementwiseOp::kScale:
      return LaunchScale(problem, operands, context, stream);
    case ElementwiseOp::kAdd:
      return LaunchAdd(problem, operands, context, stream);
  }
  return cudaErrorNotSupported;
}

cudaError_t LaunchElementwise(const ElementwiseProblem& problem, const Operands& operands,
                              const CudaContext& context, cudaStream_t stream) {
  const cudaError_t error = LaunchPacks(problem, operands, context, stream);
  // Without packs there is nothing to gain.
  return error == cudaErrorNotSupported ? LaunchElementwiseNaive(problem, operands, context, stream) : error;
}

constexpr CudaVariant<ElementwiseProblem> kVariants[] = {
    {.name = "elementwise",
     .summary = "16 bytes a load or store, a pack of elements a thread, rows broadcast as vectors",
     .reproducible = true,
     .supports_dtype = IsReal,
     .supports = [](const ElementwiseProblem&, const DeviceTraits&) { return true; },
     .workspace_bytes = [](const ElementwiseProblem&, const DeviceTraits&) -> std::size_t { return 0; },
     .launch = LaunchElementwise,
     .step = 2},
    {.name = "naive",
     .summary = "an element a load, types decided at run time",
     .reproducible = true,
     .supports_dtype = IsReal,
     .supports = [](const ElementwiseProblem&, const DeviceTraits&) { return true; },
     .workspace_bytes = [](const ElementwiseProblem&, const DeviceTraits&) -> std::size_t { return 0; },
     .launch = LaunchElementwiseNaive,
     .cost = [](const ElementwiseProblem&, const DeviceTraits&) -> VariantCost { return {.transfer = 4}; },
     .step = 1},
};

}  // namespace

std::span<const CudaVariant<ElementwiseProblem>> CudaElementwiseVariants() { return kVariants; }

}  // namespace warpline
