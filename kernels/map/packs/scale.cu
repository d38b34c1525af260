// Variant `packs` for products with a number.
#include "kernels/map/packs/kernels.h"
#include "kernels/map/packs/packs.cuh"

namespace warpline {
namespace {

struct Scale {
  static constexpr bool kHasSecond = false, kChangesType = false;
  template <typename T>
  __device__ static auto Apply(T x, T, const StepScalars* scalars) {
    using V = PackArithmetic<T>;
    return Widen<V>(x) * FactorOf<V>(*scalars);
  }
};

}  // namespace

cudaError_t LaunchScale(const PackPlan& plan, const Operands& operands, cudaStream_t stream) {
  cudaError_t error = cudaErrorNotSupported;
  VisitRealOfSize(plan.map.dtype,
                  [&]<typename T>(T) { error = LaunchPacks<Scale, T, sizeof(T)>(plan, operands, stream); });
  return error;
}

}  // namespace warpline
