// The variant table of maps.
#include <algorithm>
#include <optional>
#include <utility>

#include "kernels/cuda_choice.h"
#include "kernels/map/kernels.h"
#include "kernels/map/packs/kernels.h"

namespace warpline {
namespace {

DType OperandType(const MapProblem& problem, const MapNode& node) {
  if (RowOf(node.op).operands == 0 || node.op == MapOp::kWhere) return node.dtype;
  const auto value = static_cast<std::size_t>(node.operands[0]);
  return value < problem.inputs.size() ? problem.inputs[value].dtype
                                       : problem.nodes[value - problem.inputs.size()].dtype;
}

// Returns how many bytes move in the time that one node needs for one element: a third of the time for its
// worst operands, which tests/bench/worst_operands measured on an H200
// (docs/benchmarks/2026-11-28-h200-worst-operands.md; 2026-11-30-h200-complex-maps.md for complex numbers).
// For light operations, ordinary operands take this time too: x*a+b of f32 took 1.4 times as long as moving
// its 8 bytes, from docs/benchmarks/2026-11-27-h200-maps.md.
double BytesLike(const MapProblem& problem, const MapNode& node) {
  const MapOpRow& row = RowOf(node.op);
  const DType of = OperandType(problem, node);
  const bool is_wide = SizeOf(of) >= 8;
  if (IsComplex(of)) {
    if (WeightOf(node.op, of) == MapWeight::kHeavy) {
      return of == DType::kC64 ? 36 : node.op == MapOp::kPow ? 72 : 60;
    }
    return node.op == MapOp::kDivide ? 17 : 16;
  }
  switch (node.op) {
    case MapOp::kFloorDivide:
    case MapOp::kRemainder:  // for floats: up to 7 modular products (fmod.h)
      return IsFloat(of) ? (is_wide ? 105 : 75) : (is_wide ? 48 : 6);
    case MapOp::kDivide:
    case MapOp::kSqrt:
      return is_wide ? 9 : 7;
    default:
      if (row.max_ulp > 0 || row.weight == MapWeight::kHeavy) return is_wide ? 48 : 12;
      return is_wide ? 8 : 3.5;
  }
}

VariantCost InterpreterCost(const MapProblem& problem, const DeviceTraits&) {
  double bytes = 0;
  for (const MapNode& node : problem.nodes) bytes += BytesLike(problem, node);
  const double moved = std::max(BytesOf(problem), 1.0);
  return {.transfer = 1 + bytes * static_cast<double>(problem.shape.Count()) / moved};
}

cudaError_t LaunchInterpreter(const MapProblem& problem, const Operands& operands, const CudaContext& context,
                              cudaStream_t stream) {
  if (context.plan != nullptr) {
    return LaunchMapInterpreter(problem, std::get<MapPlan>(context.plan->arguments), operands, context,
                                stream);
  }
  return LaunchMapInterpreter(problem, PlanMap(problem), operands, context, stream);
}

std::optional<PackPlan> PacksFor(const MapProblem& problem, const Operands& operands) {
  return PlanPacks(problem, operands.in[0], operands.in[1], operands.out);
}

cudaError_t LaunchPacks(const MapProblem& problem, const Operands& operands, const CudaContext& context,
                        cudaStream_t stream) {
  if (context.plan != nullptr) {
    return LaunchMapPacks(std::get<PackPlan>(context.plan->arguments), operands, stream);
  }
  const std::optional<PackPlan> plan = PacksFor(problem, operands);
  return plan.has_value() ? LaunchMapPacks(*plan, operands, stream) : cudaErrorNotSupported;
}

constexpr CudaVariant<MapProblem> kVariants[] = {
    {.name = "packs",
     .summary =
         "one cast, sum or product with a number: 16 bytes a load or store, a pack of elements a thread",
     .reproducible = true,
     .supports_dtype = IsReal,
     .supports = [](const MapProblem& problem,
                    const DeviceTraits&) { return PacksFor(problem, {}).has_value(); },
     .workspace_bytes = [](const MapProblem&, const DeviceTraits&) -> std::size_t { return 0; },
     .launch = LaunchPacks,
     .step = 2},
    {.name = "copy",
     .summary = "a copy between arrays of contiguous runs, up to 16 bytes a load or store",
     .reproducible = true,
     .supports_dtype = [](DType dtype) { return IsMapType(dtype) && dtype != DType::kBool; },
     .supports = MapCopySupports,
     .workspace_bytes = [](const MapProblem&, const DeviceTraits&) -> std::size_t { return 0; },
     .launch = LaunchMapCopy},
    {.name = "interpreter",
     .summary = "node by node over values in shared memory, 8 elements of f32 a thread",
     .reproducible = true,
     .supports_dtype = IsMapType,
     .supports = [](const MapProblem&, const DeviceTraits&) { return true; },
     .workspace_bytes = [](const MapProblem&, const DeviceTraits&) -> std::size_t { return 0; },
     .launch = LaunchInterpreter,
     .cost = InterpreterCost,
     .step = 1},
};

}  // namespace

std::span<const CudaVariant<MapProblem>> CudaMapVariants() { return kVariants; }

CudaChoice<MapProblem> Choose(const MapProblem& problem, std::string_view variant, const DeviceTraits& traits,
                              const Operands& operands) {
  const auto& [packs, copy, interpreter] = kVariants;
  if (variant.empty() || variant == packs.name) {
    if (std::optional<PackPlan> plan = PacksFor(problem, operands); plan.has_value()) {
      return {.row = &packs, .configuration = 0, .plan = {*std::move(plan)}};
    }
    if (variant == packs.name) return {};
  }
  if (variant.empty() || variant == copy.name) {
    if (MapCopySupports(problem, traits)) return {.row = &copy, .configuration = 0, .plan = {}};
    if (variant == copy.name) return {};
  }
  CudaChoice<MapProblem> choice = ChooseInOrder(CudaMapVariants(), problem, interpreter.name, traits);
  if (!variant.empty() && variant != interpreter.name) return {};
  if (choice.row != nullptr) choice.plan.arguments = PlanMap(problem);
  return choice;
}

}  // namespace warpline
