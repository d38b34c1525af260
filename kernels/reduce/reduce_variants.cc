#include "kernels/cuda_variants.h"
#include "kernels/reduce/canonical.h"
#include "kernels/reduce/plan.h"
#include "kernels/reduce/reduce_kernels.h"

namespace warpline {

namespace {

bool SupportsDType(DType dtype) { return dtype != DType::kI64; }

cudaError_t LaunchWarpShuffle(const ReduceProblem& problem, const Operands& operands,
                              const CudaContext& context, cudaStream_t stream) {
  switch (problem.dtype) {
    case DType::kI32:
      return LaunchReduceWarpShuffle<DType::kI32>(problem, operands, context, stream);
    case DType::kF16:
      return LaunchReduceWarpShuffle<DType::kF16>(problem, operands, context, stream);
    case DType::kBF16:
      return LaunchReduceWarpShuffle<DType::kBF16>(problem, operands, context, stream);
    case DType::kF32:
      return LaunchReduceWarpShuffle<DType::kF32>(problem, operands, context, stream);
    case DType::kF64:
      return LaunchReduceWarpShuffle<DType::kF64>(problem, operands, context, stream);
    case DType::kI64:
      break;
  }
  return cudaErrorNotSupported;
}

constexpr CudaVariant<ReduceProblem> kVariants[] = {
    {.name = "warp_shuffle",
     .summary = "warp shuffles over rows or columns, in two kernels where few results have many elements",
     .reproducible = true,
     .supports_dtype = SupportsDType,
     .supports = [](const ReduceProblem&, const DeviceTraits&) { return true; },
     .workspace_bytes =
         [](const ReduceProblem& problem, const DeviceTraits& traits) {
           const CanonicalReduce reduce = Canonicalize(problem);
           return PlanReduce(reduce, problem.dtype, traits).WorkspaceBytes(reduce.results);
         },
     .launch = LaunchWarpShuffle},
    {.name = "naive",
     .summary = "one thread a result, in f64 or i64",
     .reproducible = true,
     .supports_dtype = SupportsDType,
     .supports = [](const ReduceProblem&, const DeviceTraits&) { return true; },
     .workspace_bytes = [](const ReduceProblem&, const DeviceTraits&) -> std::size_t { return 0; },
     .launch = LaunchReduceNaive},
};

}  // namespace

std::span<const CudaVariant<ReduceProblem>> CudaReduceVariants() { return kVariants; }

}  // namespace warpline
