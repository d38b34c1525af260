#include "kernels/reduce/reduce_kernels.h"
#include "kernels/reduce/reduce_warp_shuffle.cuh"

namespace warpline {

template <>
cudaError_t LaunchReduceWarpShuffle<DType::kBF16>(const ReduceProblem& problem, const Operands& operands,
                                                  const CudaContext& context, cudaStream_t stream) {
  return LaunchWarpShuffle<DeviceType<DType::kBF16>::type>(problem, operands, context, stream);
}

}  // namespace warpline
