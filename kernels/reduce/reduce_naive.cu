// Variant `naive`: one thread a result, element after element in the order of the index, in f64 (i64): the
// oracle.
#include "kernels/launch_grids.h"
#include "kernels/reduce/canonical.h"
#include "kernels/reduce/reduce_kernels.h"
#include "kernels/reduce/reduce_ops.cuh"

namespace warpline {
namespace {

constexpr int kThreads = 128;

template <typename R, typename T>
__global__ void __launch_bounds__(kThreads)
    ReduceSerially(const T* x, typename R::Result* y, const __grid_constant__ CanonicalReduce reduce,
                   std::int64_t first_block) {
  const std::int64_t result = (first_block + blockIdx.x) * kThreads + threadIdx.x;
  if (result >= reduce.results) return;
  x += reduce.kept.Offset(result);
  typename R::Acc acc = R::Identity();
  for (std::int64_t r = 0; r < reduce.reduced_count; ++r) {
    acc = R::Combine(acc, R::Lift(x[reduce.reduced.Offset(r)], r));
  }
  y[result] = R::Finish(acc, reduce.reduced_count);
}

template <ReduceOp kOp, typename T>
cudaError_t Launch(const CanonicalReduce& reduce, const Operands& operands, cudaStream_t stream) {
  using Value = std::conditional_t<std::is_integral_v<T>, std::int64_t, double>;
  using R = Reduction<kOp, T, Value>;
  return LaunchGrids(CeilDiv(reduce.results, kThreads), [&](std::int64_t first, unsigned grid) {
    ReduceSerially<R, T><<<grid, kThreads, 0, stream>>>(
        static_cast<const T*>(operands.in[0]), static_cast<typename R::Result*>(operands.out), reduce, first);
  });
}

template <DType kDType>
cudaError_t LaunchOp(ReduceOp op, const CanonicalReduce& reduce, const Operands& operands,
                     cudaStream_t stream) {
  using T = typename DeviceType<kDType>::type;
  switch (op) {
    case ReduceOp::kSum:
      return Launch<ReduceOp::kSum, T>(reduce, operands, stream);
    case ReduceOp::kMin:
      return Launch<ReduceOp::kMin, T>(reduce, operands, stream);
    case ReduceOp::kMax:
      return Launch<ReduceOp::kMax, T>(reduce, operands, stream);
    case ReduceOp::kMean:
      return Launch<ReduceOp::kMean, T>(reduce, operands, stream);
    case ReduceOp::kArgmax:
      return Launch<ReduceOp::kArgmax, T>(reduce, operands, stream);
  }
  return cudaErrorNotSupported;
}

}  // namespace

cudaError_t LaunchReduceNaive(const ReduceProblem& problem, const Operands& operands,
                              const CudaContext& /*context*/, cudaStream_t stream) {
  const CanonicalReduce reduce = Canonicalize(problem);
  switch (problem.dtype) {
    case DType::kI32:
      return LaunchOp<DType::kI32>(problem.op, reduce, operands, stream);
    case DType::kF16:
      return LaunchOp<DType::kF16>(problem.op, reduce, operands, stream);
    case DType::kBF16:
      return LaunchOp<DType::kBF16>(problem.op, reduce, operands, stream);
    case DType::kF32:
      return LaunchOp<DType::kF32>(problem.op, reduce, operands, stream);
    case DType::kF64:
      return LaunchOp<DType::kF64>(problem.op, reduce, operands, stream);
    default:
      return cudaErrorNotSupported;
  }
}

}  // namespace warpline
