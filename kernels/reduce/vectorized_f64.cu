// The kernels of plans for f64.
#include "kernels/reduce/kernels.h"
#include "kernels/reduce/vector_monoids.cuh"

namespace warpline {

cudaError_t LaunchVectorizedF64(const ReduceProblem& problem, const ReducePlan& plan,
                                const Operands& operands, const CudaContext& context, cudaStream_t stream) {
  return VisitFloatMonoid<double, double>(problem, [&]<typename R>(std::type_identity<R>) {
    return LaunchVectors<R, double>(problem, plan, operands, context, stream);
  });
}

}  // namespace warpline
