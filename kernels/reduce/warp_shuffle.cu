// Variant `warp_shuffle`: the threads of a result combine what they took in through registers, one barrier a
// CTA instead of one a level of the tree. Where few results have many elements, several CTAs share a result
// and a second kernel combines their partial results.
//
// Limit: device memory, for large inputs; for small ones the launch of the second kernel.
// Next, `cooperative`: one kernel.
#include "kernels/reduce/by_shuffles.cuh"
#include "kernels/reduce/kernels.h"
#include "kernels/reduce/typed.cuh"

namespace warpline {

cudaError_t LaunchReduceWarpShuffle(const ReduceProblem& problem, const Operands& operands,
                                    const CudaContext& context, cudaStream_t stream) {
  return VisitLadder(problem, operands, [&]<typename R, typename Source>(std::type_identity<R>, Source x) {
    return LaunchByShuffles<R>(problem, x, operands, context, stream);
  });
}

}  // namespace warpline
