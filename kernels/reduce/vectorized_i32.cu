// The kernels of plans for i32, i16 and i8.
#include "kernels/reduce/kernels.h"
#include "kernels/reduce/vector_monoids.cuh"

namespace warpline {

cudaError_t LaunchVectorizedI32(const ReduceProblem& problem, const ReducePlan& plan,
                                const Operands& operands, const CudaContext& context, cudaStream_t stream) {
  return VisitIntegerMonoid<std::int32_t>(problem, [&]<typename R>(std::type_identity<R>) {
    return LaunchVectors<R, std::int32_t>(problem, plan, operands, context, stream);
  });
}

}  // namespace warpline
