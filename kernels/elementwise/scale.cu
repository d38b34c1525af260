// Variant `packs`, of products with a number.
#include "kernels/elementwise/kernels.h"
#include "kernels/elementwise/packs.cuh"

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

cudaError_t LaunchScale(const ElementwiseProblem& problem, const ElementwisePlan& plan,
                        const Operands& operands, cudaStream_t stream) {
  cudaError_t error = cudaErrorNotSupported;
  VisitRealOfSize(problem.dtype, [&]<typename T>(T) {
    error = LaunchPacks<Scale, T, sizeof(T)>(problem, plan, operands, stream);
  });
  return error;
}

}  // namespace warpline
