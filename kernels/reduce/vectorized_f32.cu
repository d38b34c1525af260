// Variant `vectorized`, of f32, f16 and bf16, computed in f32.
#include "kernels/reduce/kernels.h"
#include "kernels/reduce/vector_monoids.cuh"

namespace warpline {

cudaError_t LaunchVectorizedF32(const ReduceProblem& problem, const Operands& operands,
                                const CudaContext& context, cudaStream_t stream) {
  return VisitFloatMonoid<float>(problem, [&]<typename R>(std::type_identity<R>) {
    return LaunchVectors<R, float>(problem, operands, context, stream);
  });
}

}  // namespace warpline
