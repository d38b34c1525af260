// What is asked for more rarely, such as norms of integers: the element type is decided at run time, and all
// is computed in f64 or 64-bit integers, by the kernel of the rung `warp_shuffle`.
//
// Limit: a load, a switch and an addition in f64 for each element.
#include "kernels/reduce/by_shuffles.cuh"
#include "kernels/reduce/kernels.h"
#include "kernels/reduce/wide.h"

namespace warpline {

cudaError_t LaunchReduceAny(const ReduceProblem& problem, const Operands& operands,
                            const CudaContext& context, cudaStream_t stream) {
  return VisitWideMonoid(problem, [&]<typename R>(std::type_identity<R>) {
    if constexpr (kIsRare<R>) {
      return LaunchByShuffles<R>(problem, AnySource{operands.in[0], problem.dtype}, operands, context,
                                 stream);
    }
    return cudaErrorNotSupported;
  });
}

}  // namespace warpline
