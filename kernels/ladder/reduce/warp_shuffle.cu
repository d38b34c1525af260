// Variant `warp_shuffle`: the threads of a result combine their accumulators through registers, with one
// barrier per CTA instead of one per level of the tree. If few results have many elements, several CTAs share
// a result, and a second kernel combines their partial results.
//
// Limit: device memory for large inputs; the launch of the second kernel for small ones.
// Next, `cooperative`: one kernel.
#include "kernels/ladder/reduce/by_shuffles.cuh"
#include "kernels/ladder/reduce/kernels.h"
#include "kernels/reduce/typed.cuh"

namespace warpline {

cudaError_t LaunchReduceWarpShuffle(const ReduceProblem& problem, const Operands& operands,
                                    const CudaContext& context, cudaStream_t stream) {
  return VisitLadder(problem, operands, [&]<typename R, typename Source>(std::type_identity<R>, Source x) {
    return LaunchByShuffles<R>(problem, x, operands, context, stream);
  });
}

}  // namespace warpline
