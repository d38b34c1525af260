// The monoids that reductions compute with, independent of how the work is divided. The CPU's plain loops and
// every CUDA kernel share them. A monoid has
//   Acc                     the accumulator,
//   Identity()              the Acc of no elements,
//   Add(acc, x, index)      adds one element, of type Value, with this index among the reduced ones,
//   Combine(a, b)           the Acc of both; associative and commutative apart from rounding,
//   Finish(acc, f, store)   calls store(result) with a floating-point or 64-bit value.
// Integers are summed and multiplied as std::uint64_t: modulo 2^64, for signed integers too.
#ifndef WARPLINE_KERNELS_REDUCE_MONOIDS_H_
#define WARPLINE_KERNELS_REDUCE_MONOIDS_H_

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/host_device.h"
#include "kernels/problem.h"
#include "kernels/saturating_cast.h"

namespace warpline {

// Parameters that turn an accumulator into a result.
struct ReduceFinish {
  ReduceOp op = ReduceOp::kSum;
  DType out_dtype = DType::kF32;
  bool is_signed = false;  // for integers: whether the input can be negative
  std::int64_t count = 0;  // number of elements reduced into the result
  std::int64_t ddof = 0;
};

inline ReduceFinish FinishOf(const ReduceProblem& problem) {
  return {problem.op, problem.OutDType(), IsSigned(problem.dtype) || problem.dtype == DType::kBool,
          problem.ReducedCount(), problem.ddof};
}

// Returns the absolute value, also of -0. The magnitude of an integer is unsigned, so that the magnitude of
// the most negative integer fits.
template <typename V>
WARPLINE_HOST_DEVICE auto Magnitude(V x) {
  if constexpr (std::is_floating_point_v<V>) {
    return std::fabs(x);
  } else if constexpr (std::is_unsigned_v<V>) {
    return x;
  } else {
    const auto bits = static_cast<std::make_unsigned_t<V>>(x);
    return x < 0 ? 0 - bits : bits;
  }
}
template <typename V>
using MagnitudeOf = decltype(Magnitude(V{}));

enum class Lift : std::uint8_t { kIdentity, kAbs, kSquare, kNonzero };

// For sum, mean, any, all, count_nonzero, norm1, norm2, sumsq.
template <typename V, Lift kLift>
struct SumMonoid {
  using Value = V;
  using Acc = std::conditional_t<kLift == Lift::kNonzero, std::uint64_t, V>;
  static_assert(!std::is_signed_v<Acc> || std::is_floating_point_v<Acc>);

  WARPLINE_HOST_DEVICE static Acc Identity() { return 0; }
  WARPLINE_HOST_DEVICE static void Add(Acc& acc, V x, std::int64_t) {
    if constexpr (kLift == Lift::kIdentity) {
      acc += x;
    } else if constexpr (kLift == Lift::kAbs) {
      acc += Magnitude(x);
    } else if constexpr (kLift == Lift::kSquare) {
      acc += x * x;
    } else {
      acc += x != 0 ? 1 : 0;  // NaN counts
    }
  }
  WARPLINE_HOST_DEVICE static Acc Combine(Acc a, Acc b) { return a + b; }

  template <typename Store>
  WARPLINE_HOST_DEVICE static void Finish(Acc acc, const ReduceFinish& f, Store&& store) {
    if constexpr (kLift == Lift::kNonzero) {
      if (f.op == ReduceOp::kAny) return store(std::uint64_t{acc != 0});
      if (f.op == ReduceOp::kAll) return store(std::uint64_t{acc == static_cast<std::uint64_t>(f.count)});
      store(acc);
    } else if constexpr (std::is_integral_v<V>) {
      const auto value = static_cast<std::int64_t>(acc);
      if (f.op == ReduceOp::kMean) {
        return store((f.is_signed ? static_cast<double>(value) : static_cast<double>(acc)) /
                     static_cast<double>(f.count));
      }
      if (f.is_signed) return store(value);
      store(acc);
    } else {
      if (f.op == ReduceOp::kMean) return store(acc / static_cast<V>(f.count));
      if (f.op == ReduceOp::kNorm2) return store(std::sqrt(acc));
      store(acc);
    }
  }
};

// True if accumulators are combined by addition.
template <typename R>
inline constexpr bool kIsSum = false;
template <typename V, Lift kLift>
inline constexpr bool kIsSum<SumMonoid<V, kLift>> = true;

template <typename V>
struct ProdMonoid {
  using Value = V;
  using Acc = V;
  static_assert(!std::is_signed_v<Acc> || std::is_floating_point_v<Acc>);

  WARPLINE_HOST_DEVICE static Acc Identity() { return 1; }
  WARPLINE_HOST_DEVICE static void Add(Acc& acc, V x, std::int64_t) { acc *= x; }
  WARPLINE_HOST_DEVICE static Acc Combine(Acc a, Acc b) { return a * b; }
  template <typename Store>
  WARPLINE_HOST_DEVICE static void Finish(Acc acc, const ReduceFinish& f, Store&& store) {
    if constexpr (std::is_integral_v<V>) {
      if (f.is_signed) return store(static_cast<std::int64_t>(acc));
    }
    store(acc);
  }
};

// The value that every other value beats: infinite if V has an infinity. (A variable, because device code can
// use its value but cannot call functions of numeric_limits.)
template <typename V, bool kGreatest, typename Limits = std::numeric_limits<V>>
inline constexpr V kWorst = kGreatest ? (Limits::has_infinity ? -Limits::infinity() : Limits::lowest())
                                      : (Limits::has_infinity ? Limits::infinity() : Limits::max());
inline constexpr std::int64_t kNoIndex = std::numeric_limits<std::int64_t>::max();

// For min and max, and norminf (of absolute values). NaN propagates.
template <typename V, bool kGreatest, bool kAbs = false>
struct ExtremeMonoid {
  using Value = V;
  using Acc = std::conditional_t<kAbs, MagnitudeOf<V>, V>;

  WARPLINE_HOST_DEVICE static Acc Identity() { return kWorst<Acc, kGreatest>; }
  WARPLINE_HOST_DEVICE static Acc Lifted(V x) {
    if constexpr (kAbs) return Magnitude(x);
    return x;
  }
  WARPLINE_HOST_DEVICE static void Add(Acc& acc, V x, std::int64_t) { acc = Combine(acc, Lifted(x)); }
  WARPLINE_HOST_DEVICE static Acc Combine(Acc a, Acc b) {
#ifdef __CUDA_ARCH__
    if constexpr (std::is_same_v<V, float>) {  // one instruction instead of three
      float best;
      if constexpr (kGreatest) {
        asm("max.NaN.f32 %0, %1, %2;" : "=f"(best) : "f"(a), "f"(b));
      } else {
        asm("min.NaN.f32 %0, %1, %2;" : "=f"(best) : "f"(a), "f"(b));
      }
      return best;
    }
#endif
    const bool take_a = kGreatest ? a > b : a < b;
    return take_a || IsNaN(a) ? a : b;  // also returns b if it is NaN
  }
  template <typename Store>
  WARPLINE_HOST_DEVICE static void Finish(Acc acc, const ReduceFinish&, Store&& store) {
    // Stores a double, which saturates at the greatest value of a narrower integer type: in i8, 128 becomes
    // 127.
    if constexpr (kAbs && std::is_integral_v<V>) return store(static_cast<double>(acc));
    store(acc);
  }
};

template <typename V>
using MinMonoid = ExtremeMonoid<V, false>;
template <typename V>
using MaxMonoid = ExtremeMonoid<V, true>;
template <typename V>
using MaxAbsMonoid = ExtremeMonoid<V, true, true>;

// An element and its index among the reduced elements. It is an aggregate without initialisers, because it
// lies in shared memory.
template <typename V>
struct Candidate {
  V value;
  std::int64_t index;
};

// For argmin and argmax: the first of equal elements; the first NaN wins over all numbers. Compares indices
// instead of relying on the order of calls.
template <typename V, bool kGreatest>
struct ArgMonoid {
  using Value = V;
  using Acc = Candidate<V>;

  WARPLINE_HOST_DEVICE static Acc Identity() { return {kWorst<V, kGreatest>, kNoIndex}; }
  WARPLINE_HOST_DEVICE static void Add(Acc& acc, V x, std::int64_t index) {
    acc = Combine(acc, Acc{x, index});
  }
  WARPLINE_HOST_DEVICE static Acc Combine(const Acc& a, const Acc& b) {
    const bool a_nan = IsNaN(a.value), b_nan = IsNaN(b.value);
    const bool tie = a_nan ? b_nan : a.value == b.value;
    const bool better = kGreatest ? a.value > b.value : a.value < b.value;
    const bool take_a = tie ? a.index < b.index : (a_nan || (!b_nan && better));
    return take_a ? a : b;
  }
  template <typename Store>
  WARPLINE_HOST_DEVICE static void Finish(const Acc& acc, const ReduceFinish&, Store&& store) {
    store(acc.index);
  }
};

template <typename V>
using ArgminMonoid = ArgMonoid<V, false>;
template <typename V>
using ArgmaxMonoid = ArgMonoid<V, true>;

// Sums of x - shift and of their squares, with count and shift.
struct Moments {
  std::int64_t count;
  double shift, sum, squares;
};

// For var and std. The shift is an element at first. Whenever the count has doubled, it becomes the mean so
// far. So the two sums do not cancel, even if the mean is far from 0, or after an outlier. Two accumulators
// are combined by T. Chan, G. Golub, R. LeVeque, "Updating formulae and a pairwise algorithm for computing
// sample variances", 1979.
struct MomentsMonoid {
  using Value = double;
  using Acc = Moments;

  WARPLINE_HOST_DEVICE static Acc Identity() { return {0, 0, 0, 0}; }
  WARPLINE_HOST_DEVICE static void Add(Acc& acc, double x, std::int64_t) {
    if ((acc.count & (acc.count - 1)) == 0) {  // a power of two, or 0
      if (acc.count == 0) {
        acc.shift = x;
      } else {
        acc = Centred(acc);
      }
    }
    const double distance = x - acc.shift;
    acc.count += 1;
    acc.sum += distance;
    acc.squares += distance * distance;
  }
  WARPLINE_HOST_DEVICE static double Mean(const Acc& acc) {
    return acc.shift + acc.sum / static_cast<double>(acc.count);
  }
  // Returns the sum of squared distances from the mean.
  WARPLINE_HOST_DEVICE static double Spread(const Acc& acc) {
    const double spread = acc.squares - acc.sum * (acc.sum / static_cast<double>(acc.count));
    return spread < 0 ? 0 : spread;  // negative only by rounding; NaN stays
  }
  // Returns the same moments with the mean as the shift. If that is already the shift, no division is needed.
  WARPLINE_HOST_DEVICE static Acc Centred(const Acc& acc) {
    return acc.sum == 0 ? acc : Acc{acc.count, Mean(acc), 0, Spread(acc)};
  }
  WARPLINE_HOST_DEVICE static Acc Combine(const Acc& a, const Acc& b) {
    if (a.count == 0) return b;
    if (b.count == 0) return a;
    const Acc from = Centred(a), other = Centred(b);
    const auto count_a = static_cast<double>(a.count), count_b = static_cast<double>(b.count);
    const double distance = other.shift - from.shift;
    const double share = count_b / (count_a + count_b);
    return {a.count + b.count, from.shift + distance * share, 0,
            from.squares + other.squares + distance * distance * (count_a * share)};
  }
  template <typename Store>
  WARPLINE_HOST_DEVICE static void Finish(const Acc& acc, const ReduceFinish& f, Store&& store) {
    const std::int64_t degrees = f.count > f.ddof ? f.count - f.ddof : 0;
    const double spread = acc.count == 0 ? 0 : Spread(acc);
    const double variance = spread / static_cast<double>(degrees);
    store(f.op == ReduceOp::kStd ? std::sqrt(variance) : variance);
  }
};

// The sum of exp(x - max), and max.
template <typename V>
struct ScaledSum {
  V max, sum;
};

template <typename V>
struct LogSumExpMonoid {
  using Value = V;
  using Acc = ScaledSum<V>;

  WARPLINE_HOST_DEVICE static Acc Identity() { return {kWorst<V, true>, 0}; }
  WARPLINE_HOST_DEVICE static void Add(Acc& acc, V x, std::int64_t) {
    if (x == acc.max) {  // includes infinities, whose difference would be NaN
      acc.sum += x == kWorst<V, true> ? 0 : 1;
    } else if (x > acc.max) {
      acc.sum = acc.sum * std::exp(acc.max - x) + 1;
      acc.max = x;
    } else {
      acc.sum += std::exp(x - acc.max);  // NaN stays in the sum
    }
  }
  WARPLINE_HOST_DEVICE static Acc Combine(const Acc& a, const Acc& b) {
    if (a.max == b.max) return {a.max, a.sum + b.sum};
    const bool a_greater = a.max > b.max;
    const Acc& greater = a_greater ? a : b;
    const Acc& lesser = a_greater ? b : a;
    return {greater.max, greater.sum + lesser.sum * std::exp(lesser.max - greater.max)};
  }
  template <typename Store>
  WARPLINE_HOST_DEVICE static void Finish(const Acc& acc, const ReduceFinish&, Store&& store) {
    store(acc.max + std::log(acc.sum));
  }
};

}  // namespace warpline

#endif  // WARPLINE_KERNELS_REDUCE_MONOIDS_H_
