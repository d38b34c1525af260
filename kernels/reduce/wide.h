// Selects the monoid that computes a reduction in the widest arithmetic: double, or 64-bit integers.
#ifndef WARPLINE_KERNELS_REDUCE_WIDE_H_
#define WARPLINE_KERNELS_REDUCE_WIDE_H_

#include <type_traits>

#include "kernels/reduce/monoids.h"

namespace warpline {

// Calls f with std::type_identity of the monoid, and returns what it returns.
template <typename F>
auto VisitWideMonoid(const ReduceProblem& problem, F&& f) {
  const bool floats = IsFloat(problem.dtype);
  // Sums of integers that become floats are computed as floats, as in NumPy.
  const bool to_floats = floats || IsFloat(problem.OutDType());
  // Sums of 64-bit integers could exceed 2^64 when their mean does not.
  const bool exact_mean = SizeOf(problem.dtype) < 8;
  const auto by_kind = [&]<template <typename> typename Monoid>() {
    if (floats) return f(std::type_identity<Monoid<double>>());
    if (IsUnsigned(problem.dtype)) return f(std::type_identity<Monoid<std::uint64_t>>());
    return f(std::type_identity<Monoid<std::int64_t>>());
  };
  const auto sum = [&]<Lift kLift>() {
    if (to_floats) return f(std::type_identity<SumMonoid<double, kLift>>());
    return f(std::type_identity<SumMonoid<std::uint64_t, kLift>>());
  };
  switch (problem.op) {
    case ReduceOp::kSum:
      return sum.template operator()<Lift::kIdentity>();
    case ReduceOp::kSumSq:
      return sum.template operator()<Lift::kSquare>();
    case ReduceOp::kMean:
      if (exact_mean && !floats) return f(std::type_identity<SumMonoid<std::uint64_t, Lift::kIdentity>>());
      return f(std::type_identity<SumMonoid<double, Lift::kIdentity>>());
    case ReduceOp::kNorm1:
      return f(std::type_identity<SumMonoid<double, Lift::kAbs>>());
    case ReduceOp::kNorm2:
      return f(std::type_identity<SumMonoid<double, Lift::kSquare>>());
    case ReduceOp::kAny:
    case ReduceOp::kAll:
    case ReduceOp::kCountNonzero:
      return f(std::type_identity<SumMonoid<double, Lift::kNonzero>>());
    case ReduceOp::kProd:
      if (floats) return f(std::type_identity<ProdMonoid<double>>());
      return f(std::type_identity<ProdMonoid<std::uint64_t>>());
    case ReduceOp::kMin:
      return by_kind.template operator()<MinMonoid>();
    case ReduceOp::kMax:
      return by_kind.template operator()<MaxMonoid>();
    case ReduceOp::kArgmin:
      return by_kind.template operator()<ArgminMonoid>();
    case ReduceOp::kArgmax:
      return by_kind.template operator()<ArgmaxMonoid>();
    case ReduceOp::kNormInf:
      return f(std::type_identity<MaxAbsMonoid<double>>());
    case ReduceOp::kVar:
    case ReduceOp::kStd:
      return f(std::type_identity<MomentsMonoid>());
    case ReduceOp::kLogSumExp:
      break;
  }
  return f(std::type_identity<LogSumExpMonoid<double>>());
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_REDUCE_WIDE_H_
