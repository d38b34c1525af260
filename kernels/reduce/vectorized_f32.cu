// The kernels of plans for f32, f16 and bf16. They compute in f32, or in f64 if results are f64.
#include "kernels/reduce/kernels.h"
#include "kernels/reduce/vector_monoids.cuh"

namespace warpline {

cudaError_t LaunchVectorizedF32(const ReduceProblem& problem, const ReducePlan& plan,
                                const Operands& operands, const CudaContext& context, cudaStream_t stream) {
  const auto launch = [&]<typename R>(std::type_identity<R>) {
    return LaunchVectors<R, float>(problem, plan, operands, context, stream);
  };
  // f32 would be too coarse for f64 results.
  if (problem.OutDType() == DType::kF64) return VisitFloatMonoid<float, double>(problem, launch);
  return VisitFloatMonoid<float, float>(problem, launch);
}

}  // namespace warpline
