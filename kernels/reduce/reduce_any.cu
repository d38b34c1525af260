// Variant `warp_shuffle` for what has no kernel of its element type: the type is decided at run time, and all
// is computed in f64 or 64-bit integers.
#include "kernels/reduce/reduce_kernels.h"
#include "kernels/reduce/reduce_warp_shuffle.cuh"
#include "kernels/reduce/wide.h"

namespace warpline {

cudaError_t LaunchReduceAny(const ReduceProblem& problem, const Operands& operands,
                            const CudaContext& context, cudaStream_t stream) {
  return VisitWideMonoid(problem, [&]<typename Monoid>(std::type_identity<Monoid>) {
    return LaunchWarpShuffle<Monoid>(problem, AnySource{operands.in[0], problem.dtype}, operands, context,
                                     stream);
  });
}

}  // namespace warpline
