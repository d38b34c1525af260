// Scans: processes one element after another, or one row of the inner axis after another.
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/cpu/launchers.h"
#include "kernels/cpu/looks.h"

namespace warpline::cpu {
namespace {

// Integers are added and multiplied as unsigned numbers, which wrap around.
template <ScanOp kOp, typename T>
T Combine(T a, T b) {
  if constexpr (kOp == ScanOp::kSum || kOp == ScanOp::kProd) {
    if constexpr (std::is_integral_v<T>) {
      const auto u = static_cast<std::uint64_t>(a), v = static_cast<std::uint64_t>(b);
      return static_cast<T>(kOp == ScanOp::kSum ? u + v : u * v);
    } else {
      return kOp == ScanOp::kSum ? a + b : a * b;
    }
  } else {
    // A NaN is kept: comparisons with it are false, and only NaN is unequal to itself.
    const bool takes_b = kOp == ScanOp::kMin ? b < a : b > a;
    return takes_b || b != b ? b : a;  // NOLINT(misc-redundant-expression)
  }
}

template <ScanOp kOp, typename T>
constexpr T Identity() {
  using Limits = std::numeric_limits<T>;
  if constexpr (kOp == ScanOp::kSum) return T{0};
  if constexpr (kOp == ScanOp::kProd) return T{1};
  if constexpr (kOp == ScanOp::kMin) return Limits::has_infinity ? Limits::infinity() : Limits::max();
  return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
}

template <ScanOp kOp, typename T>
void ScanAs(const ScanProblem& problem, const Operands& operands) {
  const auto* x = static_cast<const T*>(operands.in[0]);
  auto* y = static_cast<T*>(operands.out);
  const std::int64_t inner = problem.inner, step = problem.reverse ? -inner : inner;
  const std::int64_t first = problem.reverse ? (problem.count - 1) * inner : 0;
  Looks looks(operands.interest);
  for (std::int64_t row = 0; row < problem.outer;
       ++row, x += problem.count * inner, y += problem.count * inner) {
    if (inner == 1) {
      T total = Identity<kOp, T>();
      std::int64_t at = first;
      const bool ends = InPieces(looks, problem.count, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i, at += step) {
          const T next = Combine<kOp>(total, x[at]);
          y[at] = problem.exclusive ? total : next;
          total = next;
        }
      });
      if (!ends) return;
      continue;
    }
    std::int64_t at = first;
    const bool begins = InPieces(looks, inner, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t k = begin; k < end; ++k) {
        y[at + k] = problem.exclusive ? Identity<kOp, T>() : x[at + k];
      }
    });
    if (!begins) return;
    for (std::int64_t i = 1; i < problem.count; ++i, at += step) {
      const T* const add = x + (problem.exclusive ? at : at + step);
      const bool ends = InPieces(looks, inner, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t k = begin; k < end; ++k) y[at + step + k] = Combine<kOp>(y[at + k], add[k]);
      });
      if (!ends) return;
    }
  }
}

template <ScanOp kOp>
void ScanBy(const ScanProblem& problem, const Operands& operands) {
  switch (problem.dtype) {
    case DType::kF32:
      return ScanAs<kOp, float>(problem, operands);
    case DType::kF64:
      return ScanAs<kOp, double>(problem, operands);
    case DType::kI64:
      return ScanAs<kOp, std::int64_t>(problem, operands);
    default:
      return ScanAs<kOp, std::uint64_t>(problem, operands);
  }
}

}  // namespace

void Scan(const ScanProblem& problem, const Operands& operands) {
  switch (problem.op) {
    case ScanOp::kSum:
      return ScanBy<ScanOp::kSum>(problem, operands);
    case ScanOp::kProd:
      return ScanBy<ScanOp::kProd>(problem, operands);
    case ScanOp::kMin:
      return ScanBy<ScanOp::kMin>(problem, operands);
    case ScanOp::kMax:
      return ScanBy<ScanOp::kMax>(problem, operands);
  }
}

}  // namespace warpline::cpu
