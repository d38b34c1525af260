#include "kernels/reduce/reduce_kernels.h"
#include "kernels/reduce/reduce_typed.cuh"

namespace warpline {

template <>
cudaError_t LaunchReduceTyped<DType::kBF16>(const ReduceProblem& problem, const Operands& operands,
                                            const CudaContext& context, cudaStream_t stream) {
  return LaunchTyped<DeviceType<DType::kBF16>::type>(problem, operands, context, stream);
}

}  // namespace warpline
