// Selects the monoid of an operation for elements of one type, for operations of HasTypedKernel.
#ifndef WARPLINE_KERNELS_REDUCE_TYPED_CUH_
#define WARPLINE_KERNELS_REDUCE_TYPED_CUH_

#include <cuda_runtime_api.h>

#include "kernels/reduce/monoids.h"
#include "kernels/reduce/tile.cuh"
#include "kernels/variant.h"

namespace warpline {

// Calls launch(std::type_identity of the monoid). Floats are computed in f32, doubles in f64. Integers are
// compared in their own type and summed in 64 bits.
template <typename T, typename F>
cudaError_t VisitTypedMonoid(const ReduceProblem& problem, F&& launch) {
  constexpr bool kInteger = std::is_integral_v<T>;
  using V = std::conditional_t<kInteger || std::is_same_v<T, double>, T, float>;
  using Total = std::conditional_t<kInteger, std::uint64_t, V>;
  switch (problem.op) {
    case ReduceOp::kSum:
    case ReduceOp::kMean:
      return launch(std::type_identity<SumMonoid<Total, Lift::kIdentity>>());
    case ReduceOp::kMin:
      return launch(std::type_identity<MinMonoid<V>>());
    case ReduceOp::kMax:
      return launch(std::type_identity<MaxMonoid<V>>());
    case ReduceOp::kArgmin:
      return launch(std::type_identity<ArgminMonoid<V>>());
    case ReduceOp::kArgmax:
      return launch(std::type_identity<ArgmaxMonoid<V>>());
    default:
      break;
  }
  if constexpr (!kInteger) {
    switch (problem.op) {
      case ReduceOp::kNorm1:
        return launch(std::type_identity<SumMonoid<V, Lift::kAbs>>());
      case ReduceOp::kNorm2:
      case ReduceOp::kSumSq:
        return launch(std::type_identity<SumMonoid<V, Lift::kSquare>>());
      case ReduceOp::kLogSumExp:
        return launch(std::type_identity<LogSumExpMonoid<V>>());
      default:
        break;
    }
    if constexpr (sizeof(T) >= 4) {
      if (problem.op == ReduceOp::kVar || problem.op == ReduceOp::kStd) {
        return launch(std::type_identity<MomentsMonoid>());
      }
    }
  }
  return cudaErrorNotSupported;
}

// For the element types of HasRungs: calls launch(std::type_identity of the monoid, source).
template <typename F>
cudaError_t VisitLadder(const ReduceProblem& problem, const Operands& operands, F&& launch) {
  const auto visit = [&]<typename T>(T) {
    const TypedSource<T> source{static_cast<const T*>(operands.in[0])};
    return VisitTypedMonoid<T>(problem, [&](auto monoid) { return launch(monoid, source); });
  };
  switch (problem.dtype) {
    case DType::kI32:
      return visit(std::int32_t{});
    case DType::kF32:
      return visit(float{});
    case DType::kF64:
      return visit(double{});
    default:
      return cudaErrorNotSupported;
  }
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_REDUCE_TYPED_CUH_
