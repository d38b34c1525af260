#include "kernels/reduce/reduce_kernels.h"
#include "kernels/reduce/reduce_typed.cuh"
#include "kernels/reduce/reduce_warp_shuffle.cuh"

namespace warpline {

template <>
cudaError_t LaunchReduceTyped<DType::kBF16>(const ReduceProblem& problem, const Operands& operands,
                                            const CudaContext& context, cudaStream_t stream) {
  using T = DeviceType<DType::kBF16>::type;
  const TypedSource<T> source{static_cast<const T*>(operands.in[0])};
  return VisitTypedMonoid<T>(problem, [&]<typename R>(std::type_identity<R>) {
    return LaunchWarpShuffle<R>(problem, source, operands, context, stream);
  });
}

}  // namespace warpline
