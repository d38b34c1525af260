#include "kernels/reduce/cub.cuh"
#include "kernels/reduce/kernels.h"
#include "kernels/reduce/typed.cuh"

namespace warpline {

template <>
cudaError_t LaunchReduceCubTyped<DType::kF64>(const ReduceProblem& problem, const Operands& operands,
                                              cudaStream_t stream) {
  using T = DeviceType<DType::kF64>::type;
  return VisitTypedMonoid<T>(
      problem, [&]<typename R>(std::type_identity<R>) { return LaunchCub<R, T>(problem, operands, stream); });
}

}  // namespace warpline
