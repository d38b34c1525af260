// Reduce by the plainest loops, in double or 64-bit integers.
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/cpu/float16.h"
#include "kernels/cpu/launchers.h"
#include "kernels/cpu/strided.h"

namespace warpline::cpu {
namespace {

// Exact for every element type of reduce. (std::isnan wants a floating-point type.)
template <typename T>
double Widen(T value) {
  return static_cast<double>(value);
}

// Whether `value` takes the place of `best`: the first of the equals stays, and so does the first NaN.
bool Beats(double value, double best, bool greater) {
  if (std::isnan(best)) return false;
  return std::isnan(value) || (greater ? value > best : value < best);
}

// Of the elements at `x` + the offsets of `reduced`; there is at least one.
template <typename T>
void Extreme(const ReduceProblem& problem, const T* x, const AxisList& reduced, void* y, std::int64_t at) {
  double best = 0;
  std::int64_t best_index = -1;
  std::int64_t index = 0;
  reduced.ForEach([&](std::int64_t offset, std::int64_t) {
    const double value = Widen(x[offset]);
    if (best_index < 0 || Beats(value, best, problem.op != ReduceOp::kMin)) {
      best = value;
      best_index = index;
    }
    ++index;
  });
  if (problem.op == ReduceOp::kArgmax) {
    static_cast<std::int64_t*>(y)[at] = best_index;
  } else {
    static_cast<T*>(y)[at] = RoundTo<T>(best);
  }
}

template <typename T>
void SumOrMean(const ReduceProblem& problem, const T* x, const AxisList& reduced, void* y, std::int64_t at) {
  constexpr bool kInteger = std::is_integral_v<T>;
  std::conditional_t<kInteger, std::int64_t, double> sum = 0;
  reduced.ForEach([&](std::int64_t offset, std::int64_t) { sum += static_cast<decltype(sum)>(x[offset]); });
  const bool mean = problem.op == ReduceOp::kMean;
  const double quotient = static_cast<double>(sum) / static_cast<double>(problem.ReducedCount());
  if constexpr (kInteger) {
    if (mean) {
      static_cast<double*>(y)[at] = quotient;
    } else {
      static_cast<std::int64_t*>(y)[at] = sum;
    }
  } else {
    static_cast<T*>(y)[at] = RoundTo<T>(mean ? quotient : sum);
  }
}

template <typename T>
void Reduce(const ReduceProblem& problem, const Operands& operands) {
  const T* x = static_cast<const T*>(operands.in[0]);
  const auto strides = DenseStrides(problem.shape);
  AxisList kept;
  AxisList reduced;
  for (int i = 0; i < problem.shape.rank; ++i) {
    (problem.IsReduced(i) ? reduced : kept).Append({problem.shape[i], strides[i], 0});
  }
  std::int64_t at = 0;  // in y
  kept.ForEach([&](std::int64_t offset, std::int64_t) {
    if (problem.op == ReduceOp::kSum || problem.op == ReduceOp::kMean) {
      SumOrMean(problem, x + offset, reduced, operands.out, at);
    } else {
      Extreme(problem, x + offset, reduced, operands.out, at);
    }
    ++at;
  });
}

}  // namespace

void ReduceReference(const ReduceProblem& problem, const Operands& operands) {
  VisitDType(problem.dtype, [&]<typename T>(std::type_identity<T>) { Reduce<T>(problem, operands); });
}

}  // namespace warpline::cpu
