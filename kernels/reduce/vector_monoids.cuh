// From an operation to the monoid of variant `vectorized` that computes it, in each class of numbers.
#ifndef WARPLINE_KERNELS_REDUCE_VECTOR_MONOIDS_CUH_
#define WARPLINE_KERNELS_REDUCE_VECTOR_MONOIDS_CUH_

#include <type_traits>

#include "kernels/reduce/vector_launch.cuh"

namespace warpline {

// What is the same for integers and floats. Calls f with std::type_identity of the monoid.
template <typename V, typename F>
cudaError_t VisitNumberMonoid(const ReduceProblem& problem, F&& f) {
  switch (problem.op) {
    case ReduceOp::kMin:
      return f(std::type_identity<MinMonoid<V>>());
    case ReduceOp::kMax:
      return f(std::type_identity<MaxMonoid<V>>());
    case ReduceOp::kArgmin:
      return f(std::type_identity<ArgminMonoid<V>>());
    case ReduceOp::kArgmax:
      return f(std::type_identity<ArgmaxMonoid<V>>());
    case ReduceOp::kAny:
    case ReduceOp::kAll:
    case ReduceOp::kCountNonzero:
      return f(std::type_identity<SumMonoid<V, Lift::kNonzero>>());
    default:
      return cudaErrorNotSupported;
  }
}

template <typename V, typename F>
cudaError_t VisitFloatMonoid(const ReduceProblem& problem, F&& f) {
  switch (problem.op) {
    case ReduceOp::kSum:
    case ReduceOp::kMean:
      return f(std::type_identity<SumMonoid<V, Lift::kIdentity>>());
    case ReduceOp::kProd:
      return f(std::type_identity<ProdMonoid<double>>());
    case ReduceOp::kNorm1:
      return f(std::type_identity<SumMonoid<V, Lift::kAbs>>());
    case ReduceOp::kNorm2:
    case ReduceOp::kSumSq:
      return f(std::type_identity<SumMonoid<V, Lift::kSquare>>());
    case ReduceOp::kNormInf:
      return f(std::type_identity<MaxAbsMonoid<V>>());
    case ReduceOp::kVar:
    case ReduceOp::kStd:
      return f(std::type_identity<
               std::conditional_t<std::is_same_v<V, double>, MomentsMonoid, ShiftedMomentsMonoid>>());
    case ReduceOp::kLogSumExp:
      return f(std::type_identity<LogSumExpMonoid<V>>());
    default:
      return VisitNumberMonoid<V>(problem, f);
  }
}

template <typename V, typename F>
cudaError_t VisitIntegerMonoid(const ReduceProblem& problem, F&& f) {
  if (problem.op == ReduceOp::kSum || problem.op == ReduceOp::kMean) {
    return f(std::type_identity<SumMonoid<std::uint64_t, Lift::kIdentity>>());
  }
  return VisitNumberMonoid<V>(problem, f);
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_REDUCE_VECTOR_MONOIDS_CUH_
