// Variant `naive`: a thread a few elements, of types that are decided at run time: neighbouring threads load
// and store neighbouring elements. The oracle, and what takes operands whose addresses are no multiples of 16
// bytes.
//
// Limit: a load, a store and two switches for each element.
// Next, `packs`: 16 bytes a load and store, and a switch for each of these.
#include "kernels/elementwise/arithmetic.h"
#include "kernels/elementwise/kernels.h"
#include "kernels/elementwise/walk.h"
#include "kernels/gpu/real.cuh"
#include "kernels/launch_grids.h"

namespace warpline {
namespace {

constexpr int kThreads = 256;
constexpr int kUnroll = 4;  // loads in flight a thread

template <typename V, ElementwiseOp kOp>
__global__ void __launch_bounds__(kThreads)
    Elementwise(const void* x, const void* y, void* out, const StepScalars* scalars, DType dtype,
                DType out_dtype, const __grid_constant__ ElementwiseWalk walk, std::int64_t first_block) {
  const std::int64_t first = (first_block + blockIdx.x) * kThreads * kUnroll + threadIdx.x;
  V values[kUnroll];
#pragma unroll
  for (int i = 0; i < kUnroll; ++i) {
    const std::int64_t index = first + i * kThreads;
    if (index >= walk.count) break;
    const ElementwiseSource source = walk.At(index);
    values[i] = LoadReal<V>(dtype, x, source.x);
    if constexpr (kOp == ElementwiseOp::kAdd) values[i] += LoadReal<V>(dtype, y, source.y);
    if constexpr (kOp == ElementwiseOp::kScale) values[i] *= FactorOf<V>(*scalars);
  }
#pragma unroll
  for (int i = 0; i < kUnroll; ++i) {
    const std::int64_t index = first + i * kThreads;
    if (index < walk.count) StoreReal(out_dtype, out, index, values[i]);
  }
}

template <typename V, ElementwiseOp kOp>
cudaError_t Launch(const ElementwiseProblem& problem, const Operands& operands, cudaStream_t stream) {
  const ElementwiseWalk walk = ElementwiseWalk::Of(problem);
  return LaunchGrids(CeilDiv(walk.count, kThreads * kUnroll), [&](std::int64_t first, unsigned grid) {
    Elementwise<V, kOp><<<grid, kThreads, 0, stream>>>(operands.in[0], operands.in[1], operands.out,
                                                       operands.scalars, problem.dtype, problem.out_dtype,
                                                       walk, first);
  });
}

}  // namespace

cudaError_t LaunchElementwiseNaive(const ElementwiseProblem& problem, const Operands& operands,
                                   const CudaContext& /*context*/, cudaStream_t stream) {
  return VisitArithmetic(problem, [&]<typename V>(std::type_identity<V>) {
    switch (problem.op) {
      case ElementwiseOp::kCast:
        return Launch<V, ElementwiseOp::kCast>(problem, operands, stream);
      case ElementwiseOp::kScale:
        return Launch<V, ElementwiseOp::kScale>(problem, operands, stream);
      case ElementwiseOp::kAdd:
        return Launch<V, ElementwiseOp::kAdd>(problem, operands, stream);
    }
    return cudaErrorNotSupported;
  });
}

}  // namespace warpline
