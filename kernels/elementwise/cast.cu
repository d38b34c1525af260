// Variant `packs`, of casts.
#include "kernels/elementwise/kernels.h"
#include "kernels/elementwise/packs.cuh"

namespace warpline {
namespace {

struct Cast {
  static constexpr bool kHasSecond = false, kChangesType = true;
  template <typename T>
  __device__ static NumberOf<T> Apply(T x, T, const StepScalars*) {
    return Widen<NumberOf<T>>(x);
  }
};

}  // namespace

cudaError_t LaunchCast(const ElementwiseProblem& problem, const ElementwisePlan& plan,
                       const Operands& operands, cudaStream_t stream) {
  cudaError_t error = cudaErrorNotSupported;
  VisitRealOfSize(problem.dtype, [&]<typename T>(T) {
    switch (SizeOf(problem.out_dtype)) {
      case 1:
        error = LaunchPacks<Cast, T, 1>(problem, plan, operands, stream);
        break;
      case 2:
        error = LaunchPacks<Cast, T, 2>(problem, plan, operands, stream);
        break;
      case 4:
        error = LaunchPacks<Cast, T, 4>(problem, plan, operands, stream);
        break;
      case 8:
        error = LaunchPacks<Cast, T, 8>(problem, plan, operands, stream);
        break;
      default:
        break;
    }
  });
  return error;
}

}  // namespace warpline
