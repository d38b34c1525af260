#include "kernels/reduce/reduce_kernels.h"
#include "kernels/reduce/reduce_warp_shuffle.cuh"

namespace warpline {

template <>
cudaError_t LaunchReduceWarpShuffle<DType::kF32>(const ReduceProblem& problem, const Operands& operands,
                                                 const CudaContext& context, cudaStream_t stream) {
  return LaunchWarpShuffle<DeviceType<DType::kF32>::type>(problem, operands, context, stream);
}

}  // namespace warpline
