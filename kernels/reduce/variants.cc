#include <algorithm>

#include "kernels/cuda_variants.h"
#include "kernels/launch_grids.h"
#include "kernels/reduce/canonical.h"
#include "kernels/reduce/kernels.h"
#include "kernels/reduce/plan.h"
#include "kernels/reduce/vector_plan.h"
#include "kernels/transpose/kernels.h"

namespace warpline {
namespace {

cudaError_t LaunchVectorized(const ReduceProblem& problem, const Operands& operands,
                             const CudaContext& context, cudaStream_t stream) {
  switch (NumberClassOf(problem.dtype)) {
    case NumberClass::kF32:
      return LaunchVectorizedF32(problem, operands, context, stream);
    case NumberClass::kF64:
      return LaunchVectorizedF64(problem, operands, context, stream);
    case NumberClass::kI32:
      return LaunchVectorizedI32(problem, operands, context, stream);
    case NumberClass::kU32:
      return LaunchVectorizedU32(problem, operands, context, stream);
    case NumberClass::kI64:
      return LaunchVectorizedI64(problem, operands, context, stream);
    case NumberClass::kU64:
      return LaunchVectorizedU64(problem, operands, context, stream);
  }
  return cudaErrorNotSupported;
}

// Returns the largest workspace of the plans that a launch may use. The address of the input is not known
// yet. It is also not known whether the kernels were compiled for this device or for an earlier one.
std::size_t VectorizedWorkspace(const ReduceProblem& problem, const DeviceTraits& traits) {
  const CanonicalReduce reduce = Canonicalize(problem);
  const DeviceTraits earlier = {.multiprocessors = traits.multiprocessors};
  return std::max(
      {PlanVectors(problem, reduce, /*aligned_base=*/true, traits).WorkspaceBytes(reduce.results),
       PlanVectors(problem, reduce, /*aligned_base=*/true, earlier).WorkspaceBytes(reduce.results),
       PlanVectors(problem, reduce, /*aligned_base=*/false, traits).WorkspaceBytes(reduce.results)});
}

ReducePlan PlanOf(const ReduceProblem& problem, const DeviceTraits& traits) {
  return PlanReduce(Canonicalize(problem), VectorOf(problem), traits);
}

bool SupportsRungs(const ReduceProblem& problem, const DeviceTraits& traits) {
  const ReducePlan plan = PlanOf(problem, traits);
  return HasTypedKernel(problem) && plan.tiles * plan.split <= kMaxGridX;
}

std::size_t PartialBytes(const ReduceProblem& problem, const DeviceTraits& traits) {
  return PlanOf(problem, traits).WorkspaceBytes(Canonicalize(problem).results);
}

cudaError_t LaunchCub(const ReduceProblem& problem, const Operands& operands, const CudaContext&,
                      cudaStream_t stream) {
  switch (problem.dtype) {
    case DType::kI32:
      return LaunchReduceCubTyped<DType::kI32>(problem, operands, stream);
    case DType::kF32:
      return LaunchReduceCubTyped<DType::kF32>(problem, operands, stream);
    case DType::kF64:
      return LaunchReduceCubTyped<DType::kF64>(problem, operands, stream);
    default:
      return cudaErrorNotSupported;
  }
}

// Returns whether each result is the one element that goes into it, in the same order: reductions over axes
// of size 1. Norms and counts of one element are something else, and so is a bool whose byte is neither 0
// nor 1.
bool CopiesElements(const ReduceProblem& problem, const DeviceTraits&) {
  const bool keeps = problem.op == ReduceOp::kSum || problem.op == ReduceOp::kProd ||
                     problem.op == ReduceOp::kMin || problem.op == ReduceOp::kMax ||
                     problem.op == ReduceOp::kMean || problem.op == ReduceOp::kLogSumExp;
  const bool is_dense = problem.row_stride == 0 || problem.shape.rank == 0 ||
                        problem.row_stride == problem.shape[problem.shape.rank - 1];
  return keeps && is_dense && problem.dtype != DType::kBool && problem.ReducedCount() == 1 &&
         problem.OutDType() == problem.dtype;
}

cudaError_t LaunchCopy(const ReduceProblem& problem, const Operands& operands, const CudaContext&,
                       cudaStream_t stream) {
  const auto bytes = problem.shape.Count() * static_cast<std::int64_t>(SizeOf(problem.dtype));
  return bytes == 0 ? cudaSuccess : LaunchFlatCopy(operands.in[0], operands.out, bytes, stream);
}

// Costs, from docs/benchmarks/2026-11-23-h200-ladder.md. The rungs without one of their own reach three
// quarters of the memory's rate or more.

// One result of everything, of elements that CUB loads in vectors. Our own kernels take a microsecond longer.
bool IsSumOfAll(const ReduceProblem& problem, const DeviceTraits&) {
  const CanonicalReduce reduce = Canonicalize(problem);
  const bool is_plain = problem.op == ReduceOp::kSum || problem.op == ReduceOp::kMean ||
                        problem.op == ReduceOp::kMin || problem.op == ReduceOp::kMax;
  return IsFloat(problem.dtype) && is_plain && reduce.results == 1 && reduce.reduced_count > 0 &&
         reduce.reduced.rank == 1 && reduce.InnermostReduced();
}

VariantCost CubCost(const ReduceProblem& problem, const DeviceTraits&) {
  const CanonicalReduce reduce = Canonicalize(problem);
  if (IsSumOfAll(problem, {})) return {.launches = 2};
  constexpr double kCtaThreads = 256;  // one CTA goes through a segment
  return {.transfer = reduce.InnermostReduced() && reduce.reduced.rank == 1 ? 2.0 : 60.0,
          .serial = reduce.results > 1 ? static_cast<double>(reduce.reduced_count) / kCtaThreads : 0};
}

// Each result is a chain of loads in one thread; beyond what the device has of threads they wait for one
// another.
VariantCost NaiveCost(const ReduceProblem& problem, const DeviceTraits& traits) {
  const CanonicalReduce reduce = Canonicalize(problem);
  constexpr double kThreads = 2048;  // of a multiprocessor
  const double waves = static_cast<double>(reduce.results) / (kThreads * std::max(traits.multiprocessors, 1));
  return {.transfer = 8, .serial = static_cast<double>(reduce.reduced_count) * std::max(waves, 1.0)};
}

constexpr CudaVariant<ReduceProblem> kVariants[] = {
    {.name = "copy",
     .summary = "copies bytes, for reductions over axes of size 1 whose results are the elements",
     .reproducible = true,
     .supports_dtype = IsReal,
     .supports = CopiesElements,
     .workspace_bytes = [](const ReduceProblem&, const DeviceTraits&) -> std::size_t { return 0; },
     .launch = LaunchCopy},
    {.name = "cub",
     .summary = "CUB of the CUDA toolkit: DeviceReduce for one result, DeviceSegmentedReduce for more",
     .reproducible = true,  // CUB's promise for one device, and what its fixed order of tiles gives
     .supports_dtype = HasRungs,
     .supports = SupportsRungs,
     .workspace_bytes =
         [](const ReduceProblem& problem, const DeviceTraits& traits) {
           return CubWorkspaceBytes(Canonicalize(problem), traits);
         },
     .launch = LaunchCub,
     .preferred = IsSumOfAll,
     .cost = CubCost},
    {.name = "vectorized",
     .summary = "16-byte loads of every type, short rows and blocks of columns through shared memory",
     .reproducible = true,
     .supports_dtype = IsReal,
     .supports = [](const ReduceProblem&, const DeviceTraits&) { return true; },
     .workspace_bytes = VectorizedWorkspace,
     .launch = LaunchVectorized,
     .step = 7},
    // The ladder: each row shows one step.
    {.name = "warp_shuffle",
     .summary = "warp shuffles over rows or columns, in two kernels where few results have many elements",
     .reproducible = true,
     .supports_dtype = HasRungs,
     .supports = SupportsRungs,
     .workspace_bytes = PartialBytes,
     .launch = LaunchReduceWarpShuffle,
     .step = 4},
    {.name = "atomic",
     .summary = "sums by atomic additions, in shared memory first, then one a CTA and result",
     .reproducible = false,
     .supports_dtype = HasRungs,
     .supports =
         [](const ReduceProblem& problem, const DeviceTraits& traits) {
           return SupportsRungs(problem, traits) && IsSumLike(problem.op);
         },
     .workspace_bytes = PartialBytes,
     .launch = LaunchReduceAtomic,
     .step = 2},
    {.name = "shared",
     .summary = "a tree in shared memory, in two kernels where few results have many elements",
     .reproducible = true,
     .supports_dtype = HasRungs,
     .supports = SupportsRungs,
     .workspace_bytes = PartialBytes,
     .launch = LaunchReduceShared,
     .step = 3},
    {.name = "cooperative",
     .summary = "one kernel, which the whole grid synchronises before partial results are combined",
     .reproducible = true,
     .supports_dtype = HasRungs,
     .supports = SupportsRungs,
     .workspace_bytes = PartialBytes,
     .launch = LaunchReduceCooperative,
     .step = 5},
    {.name = "single_pass",
     .summary = "one kernel, in which the last CTA of a result combines its parts in their order",
     .reproducible = true,
     .supports_dtype = HasRungs,
     .supports = SupportsRungs,
     .workspace_bytes =
         [](const ReduceProblem& problem, const DeviceTraits& traits) {
           return PartialBytes(problem, traits) + PlanOf(problem, traits).TicketBytes();
         },
     .launch = LaunchReduceSinglePass,
     .step = 6},
    {.name = "naive",
     .summary = "one thread a result, in f64 or 64-bit integers",
     .reproducible = true,
     .supports_dtype = IsReal,
     .supports = [](const ReduceProblem&, const DeviceTraits&) { return true; },
     .workspace_bytes = [](const ReduceProblem&, const DeviceTraits&) -> std::size_t { return 0; },
     .launch = LaunchReduceNaive,
     .cost = NaiveCost,
     .step = 1},
};

}  // namespace

std::span<const CudaVariant<ReduceProblem>> CudaReduceVariants() { return kVariants; }

}  // namespace warpline
