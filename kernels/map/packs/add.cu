// Variant `packs` for sums of two operands.
#include "kernels/map/packs/kernels.h"
#include "kernels/map/packs/packs.cuh"

namespace warpline {
namespace {

struct Add {
  static constexpr bool kHasSecond = true, kChangesType = false;
  template <typename T>
  __device__ static auto Apply(T x, T y, const StepScalars*) {
    using V = PackArithmetic<T>;
    return Widen<V>(x) + Widen<V>(y);
  }
};

}  // namespace

cudaError_t LaunchAdd(const PackPlan& plan, const Operands& operands, cudaStream_t stream) {
  cudaError_t error = cudaErrorNotSupported;
  VisitRealOfSize(plan.map.dtype,
                  [&]<typename T>(T) { error = LaunchPacks<Add, T, sizeof(T)>(plan, operands, stream); });
  return error;
}

}  // namespace warpline
