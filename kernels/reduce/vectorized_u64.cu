// The kernels of plans for u64.
#include "kernels/reduce/kernels.h"
#include "kernels/reduce/vector_monoids.cuh"

namespace warpline {

cudaError_t LaunchVectorizedU64(const ReduceProblem& problem, const ReducePlan& plan,
                                const Operands& operands, const CudaContext& context, cudaStream_t stream) {
  return VisitIntegerMonoid<std::uint64_t>(problem, [&]<typename R>(std::type_identity<R>) {
    return LaunchVectors<R, std::uint64_t>(problem, plan, operands, context, stream);
  });
}

}  // namespace warpline
