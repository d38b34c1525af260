#include "kernels/reduce/reduce_kernels.h"
#include "kernels/reduce/reduce_typed.cuh"

namespace warpline {

template <>
cudaError_t LaunchReduceTyped<DType::kF32>(const ReduceProblem& problem, const Operands& operands,
                                           const CudaContext& context, cudaStream_t stream) {
  return LaunchTyped<DeviceType<DType::kF32>::type>(problem, operands, context, stream);
}

}  // namespace warpline
