// PackAdder<R>::Add adds several elements to an accumulator at once. Work that a monoid's Add needs only once
// is done once per pack. Elements are added in the order of their indices: x[0] has index `first`, and the
// indices increase by `step`. All of them are above those already in the accumulator.
#ifndef WARPLINE_KERNELS_REDUCE_ADD_PACK_CUH_
#define WARPLINE_KERNELS_REDUCE_ADD_PACK_CUH_

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "kernels/reduce/integer_moments.h"
#include "kernels/reduce/monoids.h"
#include "kernels/reduce/shifted_moments.h"

namespace warpline {

// The type to which elements are widened before they are added: the monoid's Value, with two exceptions. var
// of f32 widens its elements one by one. Sums of 8-bit and 16-bit integers are widened from 32 bits, which
// can hold the sum of a pack.
template <typename R, typename T, typename Number>
using PackValue =
    std::conditional_t<std::is_same_v<R, ShiftedMomentsMonoid> ||
                           (std::is_same_v<R, SumMonoid<std::uint64_t, Lift::kIdentity>> && sizeof(T) <= 2),
                       Number, typename R::Value>;

// True if the indices of elements matter, so that the elements of a pack must have consecutive indices.
template <typename R>
inline constexpr bool kHasIndices = false;
template <typename V, bool kGreatest>
inline constexpr bool kHasIndices<ArgMonoid<V, kGreatest>> = true;

// True if accumulators start with the first element of their result as the shift.
template <typename R>
inline constexpr bool kHasShift = std::is_same_v<R, ShiftedMomentsMonoid>;

// Returns x[0] op x[1] op ... as a tree, whose depth limits rounding errors and waits. kSize is a power of
// two; x is overwritten. (It is recursive, because the compiler does not unroll a loop that bisects; then x
// would be in local memory.)
template <int kSize, typename V, int kArray, typename F>
__device__ V TreeOf(V (&x)[kArray], F& f) {
  if constexpr (kSize > 1) {
    constexpr int kHalf = kSize / 2;
#pragma unroll
    for (int i = 0; i < kHalf; ++i) x[i] = f(x[i], x[i + kHalf]);
    return TreeOf<kHalf>(x, f);
  }
  return x[0];
}
template <int kSize, typename V, typename F>
__device__ V Tree(V (&x)[kSize], F f) {
  return TreeOf<kSize>(x, f);
}

template <typename R>
struct PackAdder;

template <typename V, Lift kLift>
struct PackAdder<SumMonoid<V, kLift>> {
  using R = SumMonoid<V, kLift>;
  template <typename W, int kSize>
  __device__ static void Add(typename R::Acc& acc, const W (&x)[kSize], std::int64_t, std::int64_t) {
    if constexpr (!std::is_same_v<V, W>) {  // widens from a narrower type, signed or unsigned
      W terms[kSize];
#pragma unroll
      for (int i = 0; i < kSize; ++i) terms[i] = x[i];
      acc += static_cast<V>(static_cast<std::int64_t>(Tree(terms, [](W a, W b) { return a + b; })));
    } else if constexpr (kLift == Lift::kNonzero) {
      unsigned count = 0;
#pragma unroll
      for (int i = 0; i < kSize; ++i) count += x[i] != 0 ? 1 : 0;
      acc += count;
    } else {
      V lifted[kSize];
#pragma unroll
      for (int i = 0; i < kSize; ++i) {
        lifted[i] = kLift == Lift::kSquare ? x[i] * x[i] : kLift == Lift::kAbs ? Magnitude(x[i]) : x[i];
      }
      acc += Tree(lifted, [](V a, V b) { return a + b; });
    }
  }
};

template <typename V>
struct PackAdder<ProdMonoid<V>> {
  template <int kSize>
  __device__ static void Add(V& acc, const V (&x)[kSize], std::int64_t, std::int64_t) {
    V factors[kSize];
#pragma unroll
    for (int i = 0; i < kSize; ++i) factors[i] = x[i];
    acc *= Tree(factors, [](V a, V b) { return a * b; });
  }
};

template <typename V, bool kGreatest, bool kAbs>
struct PackAdder<ExtremeMonoid<V, kGreatest, kAbs>> {
  using R = ExtremeMonoid<V, kGreatest, kAbs>;
  template <int kSize>
  __device__ static void Add(typename R::Acc& acc, const V (&x)[kSize], std::int64_t, std::int64_t) {
    using Acc = typename R::Acc;
    Acc values[kSize];
#pragma unroll
    for (int i = 0; i < kSize; ++i) values[i] = R::Lifted(x[i]);
    acc = R::Combine(acc, Tree(values, [](Acc a, Acc b) { return R::Combine(a, b); }));
  }
};

// The index is searched only if the pack contains a better element than the accumulator.
template <typename V, bool kGreatest>
struct PackAdder<ArgMonoid<V, kGreatest>> {
  using R = ArgMonoid<V, kGreatest>;
  using Extreme = ExtremeMonoid<V, kGreatest>;
  template <int kSize>
  __device__ static void Add(typename R::Acc& acc, const V (&x)[kSize], std::int64_t first,
                             std::int64_t step) {
    V values[kSize];
#pragma unroll
    for (int i = 0; i < kSize; ++i) values[i] = x[i];
    const V best = Tree(values, [](V a, V b) { return Extreme::Combine(a, b); });
    const bool better = kGreatest ? best > acc.value : best < acc.value;
    const bool first_nan = IsNaN(best) && !IsNaN(acc.value);
    if (!better && !first_nan && acc.index != kNoIndex) return;
    int at = 0;
#pragma unroll
    for (int i = kSize - 1; i >= 0; --i) {
      if (x[i] == best || IsNaN(x[i])) at = i;
    }
    acc = {best, first + at * step};
  }
};

// 32 bits can hold the sum of a pack.
template <typename V>
struct PackAdder<IntegerMomentsMonoid<V>> {
  template <int kSize>
  __device__ static void Add(IntegerMoments& acc, const V (&x)[kSize], std::int64_t, std::int64_t) {
    V values[kSize];
    std::uint64_t squares[2] = {0, 0};  // two chains, because a 64-bit addition waits for its lower half
#pragma unroll
    for (int i = 0; i < kSize; ++i) {
      values[i] = x[i];
      squares[i % 2] += IntegerMomentsMonoid<V>::Square(x[i]);
    }
    acc.sum +=
        static_cast<std::uint64_t>(static_cast<std::int64_t>(Tree(values, [](V a, V b) { return a + b; })));
    acc.squares += squares[0] + squares[1];
  }
};

// Uses two chains, because an addition in f64 takes long.
template <>
struct PackAdder<ShiftedMomentsMonoid> {
  template <int kSize>
  __device__ static void Add(ShiftedMoments& acc, const float (&x)[kSize], std::int64_t, std::int64_t) {
    double sum = 0, squares = 0;
#pragma unroll
    for (int i = 0; i < kSize; ++i) {
      const double distance = static_cast<double>(x[i]) - acc.shift;
      if (i % 2 == 0) {
        sum += distance;
        squares += distance * distance;
      } else {
        acc.sum += distance;
        acc.squares += distance * distance;
      }
    }
    acc.sum += sum;
    acc.squares += squares;
  }
};

// Computes sums of x - x[0] and of their squares, whose size is that of the spread of the pack. Between
// packs, the mean and the sum of squared distances are kept, with the updates of Chan, Golub and LeVeque.
template <>
struct PackAdder<MomentsMonoid> {
  template <int kSize>
  __device__ static void Add(Moments& acc, const double (&x)[kSize], std::int64_t, std::int64_t) {
    double sum, square;
    SumUp(x, sum, square);
    constexpr double kCount = kSize;
    const double mean = x[0] + sum / kCount;
    const double spread = square - sum * (sum / kCount);
    acc = MomentsMonoid::Centred(acc);
    const auto before = static_cast<double>(acc.count);
    const double share = kCount * Reciprocal(before + kCount);
    const double distance = acc.count == 0 ? 0 : mean - acc.shift;
    acc.shift = acc.count == 0 ? mean : acc.shift + distance * share;
    acc.squares += (spread < 0 ? 0 : spread) + distance * distance * (before * share);
    acc.count += kSize;
  }

 private:
  // Returns 1 / x, by two steps of Newton's iteration from the f32 reciprocal instead of an f64 division. The
  // error is at most one or two units in the last place.
  __device__ static double Reciprocal(double x) {
    const double rough = static_cast<double>(1 / static_cast<float>(x));
    const double better = rough * (2 - x * rough);
    return better * (2 - x * better);
  }

  // Uses two chains: an array of differences would need too many registers.
  template <int kSize>
  __device__ static void SumUp(const double (&x)[kSize], double& sum, double& square) {
    double sums[2] = {0, 0}, squares[2] = {0, 0};
#pragma unroll
    for (int i = 1; i < kSize; ++i) {
      const double distance = x[i] - x[0];
      sums[i % 2] += distance;
      squares[i % 2] += distance * distance;
    }
    sum = sums[0] + sums[1];
    square = squares[0] + squares[1];
  }
};

// Finds the maximum first. Then each element needs only one exponential, and the earlier sum is scaled only
// if the maximum grows.
template <typename V>
struct PackAdder<LogSumExpMonoid<V>> {
  template <int kSize>
  __device__ static void Add(ScaledSum<V>& acc, const V (&x)[kSize], std::int64_t, std::int64_t) {
    V values[kSize];
#pragma unroll
    for (int i = 0; i < kSize; ++i) values[i] = x[i];
    const V greatest = Tree(values, [](V a, V b) { return std::fmax(a, b); });  // NaN and b give b
    if (greatest > acc.max) {
      acc.sum = acc.sum == 0 ? V{0} : acc.sum * Exp(acc.max - greatest);
      acc.max = greatest;
    }
    if (std::isfinite(acc.max)) {
#pragma unroll
      for (int i = 0; i < kSize; ++i) values[i] = Exp(x[i] - acc.max);
    } else {
      // An infinity counts as one if it is the maximum, and otherwise not at all. The difference of two
      // infinities would be NaN.
      const V of_max = acc.max == kWorst<V, true> ? V{0} : V{1};
#pragma unroll
      for (int i = 0; i < kSize; ++i) values[i] = x[i] == acc.max ? of_max : Exp(x[i] - acc.max);
    }
    acc.sum += Tree(values, [](V a, V b) { return a + b; });
  }

 private:
  // Returns e^x for x <= 0. In f32 it is 2^(x log2 e), with the error of the product, x / 2^24. This does not
  // matter for small terms, whose x is large, nor do terms below 2^-126.
  __device__ static V Exp(V x) {
    if constexpr (std::is_same_v<V, float>) {
      float power;
      asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x * 1.4426950408889634f));
      return power;
    } else {
      return ExpOfF64(x);
    }
  }
  // Returns e^x for x <= 0, as 2^k e^r with |r| <= ln 2 / 2. e^r is a series up to r^13 / 13!; the next term
  // is below 2^-57. std::exp has branches for cases that do not occur here. Below x = -708 (e^x < 2^-1021)
  // the result is 0. This does not matter: the largest element adds e^0 = 1 to the sum.
  __device__ static double ExpOfF64(double x) {
    constexpr double kLog2E = 1.4426950408889634, kLn2 = 0.6931471805599453,
                     kLn2Rest = 2.3190468138462996e-17;
    constexpr double kToInteger = 6755399441055744;  // 1.5 * 2^52: an addition rounds to units
    constexpr double kSeries[] = {1.0 / 6227020800,
                                  1.0 / 479001600,
                                  1.0 / 39916800,
                                  1.0 / 3628800,
                                  1.0 / 362880,
                                  1.0 / 40320,
                                  1.0 / 5040,
                                  1.0 / 720,
                                  1.0 / 120,
                                  1.0 / 24,
                                  1.0 / 6,
                                  1.0 / 2,
                                  1,
                                  1};
    const double shifted = fma(x, kLog2E, kToInteger), k = shifted - kToInteger;
    const double r = fma(-k, kLn2Rest, fma(-k, kLn2, x));
    double power = kSeries[0];
#pragma unroll
    for (int i = 1; i < 14; ++i) power = fma(power, r, kSeries[i]);
    const double scale = __hiloint2double((__double2loint(shifted) + 1023) << 20, 0);  // 2^k
    return x < -708 ? 0 : power * scale;                                               // NaN stays NaN
  }
};

}  // namespace warpline

#endif  // WARPLINE_KERNELS_REDUCE_ADD_PACK_CUH_
