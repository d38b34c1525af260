// Variant `packs` for casts.
#include "kernels/map/packs/kernels.h"
#include "kernels/map/packs/packs.cuh"

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

cudaError_t LaunchCast(const PackPlan& plan, const Operands& operands, cudaStream_t stream) {
  cudaError_t error = cudaErrorNotSupported;
  VisitRealOfSize(plan.map.dtype, [&]<typename T>(T) {
    switch (SizeOf(plan.map.out_dtype)) {
      case 1:
        error = LaunchPacks<Cast, T, 1>(plan, operands, stream);
        break;
      case 2:
        error = LaunchPacks<Cast, T, 2>(plan, operands, stream);
        break;
      case 4:
        error = LaunchPacks<Cast, T, 4>(plan, operands, stream);
        break;
      case 8:
        error = LaunchPacks<Cast, T, 8>(plan, operands, stream);
        break;
      default:
        break;
    }
  });
  return error;
}

}  // namespace warpline
