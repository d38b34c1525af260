#include "kernels/cuda_variants.h"
#include "kernels/reduce/canonical.h"
#include "kernels/reduce/plan.h"
#include "kernels/reduce/reduce_kernels.h"

namespace warpline {
namespace {

cudaError_t LaunchWarpShuffle(const ReduceProblem& problem, const Operands& operands,
                              const CudaContext& context, cudaStream_t stream) {
  if (!HasTypedKernel(problem)) return LaunchReduceAny(problem, operands, context, stream);
  switch (problem.dtype) {
    case DType::kI32:
      return LaunchReduceTyped<DType::kI32>(problem, operands, context, stream);
    case DType::kF16:
      return LaunchReduceTyped<DType::kF16>(problem, operands, context, stream);
    case DType::kBF16:
      return LaunchReduceTyped<DType::kBF16>(problem, operands, context, stream);
    case DType::kF32:
      return LaunchReduceTyped<DType::kF32>(problem, operands, context, stream);
    case DType::kF64:
      return LaunchReduceTyped<DType::kF64>(problem, operands, context, stream);
    default:
      return cudaErrorNotSupported;
  }
}

constexpr CudaVariant<ReduceProblem> kVariants[] = {
    {.name = "warp_shuffle",
     .summary = "warp shuffles over rows or columns, in two kernels where few results have many elements",
     .reproducible = true,
     .supports_dtype = IsReal,
     .supports = [](const ReduceProblem&, const DeviceTraits&) { return true; },
     .workspace_bytes =
         [](const ReduceProblem& problem, const DeviceTraits& traits) {
           const CanonicalReduce reduce = Canonicalize(problem);
           return PlanReduce(reduce, VectorOf(problem), traits).WorkspaceBytes(reduce.results);
         },
     .launch = LaunchWarpShuffle},
    {.name = "naive",
     .summary = "one thread a result, in f64 or 64-bit integers",
     .reproducible = true,
     .supports_dtype = IsReal,
     .supports = [](const ReduceProblem&, const DeviceTraits&) { return true; },
     .workspace_bytes = [](const ReduceProblem&, const DeviceTraits&) -> std::size_t { return 0; },
     .launch = LaunchReduceNaive},
};

}  // namespace

std::span<const CudaVariant<ReduceProblem>> CudaReduceVariants() { return kVariants; }

}  // namespace warpline
