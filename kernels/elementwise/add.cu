// Variant `packs`, of sums of two operands.
#include "kernels/elementwise/kernels.h"
#include "kernels/elementwise/packs.cuh"

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

cudaError_t LaunchAdd(const ElementwiseProblem& problem, const ElementwisePlan& plan,
                      const Operands& operands, cudaStream_t stream) {
  cudaError_t error = cudaErrorNotSupported;
  VisitRealOfSize(problem.dtype, [&]<typename T>(T) {
    error = LaunchPacks<Add, T, sizeof(T)>(problem, plan, operands, stream);
  });
  return error;
}

}  // namespace warpline
