// Selects the monoid that computes an operation in the kernels of plans, for each class of numbers.
#ifndef WARPLINE_KERNELS_REDUCE_VECTOR_MONOIDS_CUH_
#define WARPLINE_KERNELS_REDUCE_VECTOR_MONOIDS_CUH_

#include <type_traits>

#include "kernels/reduce/vector_launch.cuh"

namespace warpline {

// Visits the monoids that are the same for integers and floats. Calls f with std::type_identity of the
// monoid.
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

// Elements are numbers V. Total is float, or double if elements or results are double.
template <typename V, typename Total, typename F>
cudaError_t VisitFloatMonoid(const ReduceProblem& problem, F&& f) {
  switch (problem.op) {
    case ReduceOp::kSum:
    case ReduceOp::kMean:
      return f(std::type_identity<SumMonoid<Total, Lift::kIdentity>>());
    case ReduceOp::kProd:
      return f(std::type_identity<ProdMonoid<double>>());
    case ReduceOp::kNorm1:
      return f(std::type_identity<SumMonoid<Total, Lift::kAbs>>());
    case ReduceOp::kNorm2:
    case ReduceOp::kSumSq:
      return f(std::type_identity<SumMonoid<Total, Lift::kSquare>>());
    case ReduceOp::kNormInf:
      return f(std::type_identity<MaxAbsMonoid<V>>());
    case ReduceOp::kVar:
    case ReduceOp::kStd:
      return f(std::type_identity<
               std::conditional_t<std::is_same_v<Total, double>, MomentsMonoid, ShiftedMomentsMonoid>>());
    case ReduceOp::kLogSumExp:
      return f(std::type_identity<LogSumExpMonoid<Total>>());
    default:
      return VisitNumberMonoid<V>(problem, f);
  }
}

// Integers with float results are summed as floats, as NumPy does. So are 64-bit integers for their mean,
// because the sum could exceed 2^64 when the mean does not.
template <typename V, typename F>
cudaError_t VisitIntegerMonoid(const ReduceProblem& problem, F&& f) {
  const bool to_floats = IsFloat(problem.OutDType());
  const auto sum = [&]<Lift kLift>(bool as_floats) {
    if (as_floats) return f(std::type_identity<SumMonoid<double, kLift>>());
    return f(std::type_identity<SumMonoid<std::uint64_t, kLift>>());
  };
  switch (problem.op) {
    case ReduceOp::kSum:
      return sum.template operator()<Lift::kIdentity>(to_floats);
    case ReduceOp::kMean:
      return sum.template operator()<Lift::kIdentity>(sizeof(V) == 8);
    case ReduceOp::kSumSq:
      return sum.template operator()<Lift::kSquare>(to_floats);
    case ReduceOp::kNorm1:
      return f(std::type_identity<SumMonoid<double, Lift::kAbs>>());
    case ReduceOp::kNorm2:
      return f(std::type_identity<SumMonoid<double, Lift::kSquare>>());
    case ReduceOp::kNormInf:
      return f(std::type_identity<MaxAbsMonoid<V>>());
    case ReduceOp::kProd:
      return f(std::type_identity<ProdMonoid<std::uint64_t>>());
    case ReduceOp::kVar:
    case ReduceOp::kStd:
      if constexpr (sizeof(V) == 4) {
        if (IntegerMomentsMonoid<V>::Suits(problem)) return f(std::type_identity<IntegerMomentsMonoid<V>>());
      }
      return f(std::type_identity<MomentsMonoid>());
    case ReduceOp::kLogSumExp:
      return f(std::type_identity<LogSumExpMonoid<double>>());
    default:
      return VisitNumberMonoid<V>(problem, f);
  }
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_REDUCE_VECTOR_MONOIDS_CUH_
