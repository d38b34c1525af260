// var and std of 8-bit and 16-bit integers, from exact sums.
#ifndef WARPLINE_KERNELS_REDUCE_INTEGER_MOMENTS_H_
#define WARPLINE_KERNELS_REDUCE_INTEGER_MOMENTS_H_

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "kernels/host_device.h"
#include "kernels/reduce/monoids.h"

namespace warpline {

// Sums of x and of its squares. The first is modulo 2^64, for signed x too.
struct IntegerMoments {
  std::uint64_t sum, squares;
};

// V: the 32-bit number to which elements are widened. For all reductions for which Suits is true, nothing is
// rounded before the end. So threads are combined by two additions, and each element needs one integer
// multiplication. MomentsMonoid would convert each element to f64.
template <typename V>
struct IntegerMomentsMonoid {
  using Value = V;
  using Acc = IntegerMoments;
  static_assert(std::is_integral_v<V> && sizeof(V) == 4);

  // 16-bit elements have 32-bit squares, so the sum of 2^31 squares is below 2^63.
  static bool Suits(const ReduceProblem& problem) {
    constexpr std::int64_t kMax = std::int64_t{1} << 31;
    return SizeOf(problem.dtype) <= 2 && problem.ReducedCount() <= kMax;
  }

  // Multiplies in 32 bits: elements have at most 16 bits.
  WARPLINE_HOST_DEVICE static std::uint64_t Square(V x) {
    const auto bits = static_cast<std::uint32_t>(x);
    return bits * bits;
  }
  WARPLINE_HOST_DEVICE static Acc Identity() { return {0, 0}; }
  WARPLINE_HOST_DEVICE static void Add(Acc& acc, V x, std::int64_t) {
    acc.sum += static_cast<std::uint64_t>(static_cast<std::int64_t>(x));
    acc.squares += Square(x);
  }
  WARPLINE_HOST_DEVICE static Acc Combine(const Acc& a, const Acc& b) {
    return {a.sum + b.sum, a.squares + b.squares};
  }
  template <typename Store>
  WARPLINE_HOST_DEVICE static void Finish(const Acc& acc, const ReduceFinish& f, Store&& store) {
    const std::int64_t degrees = f.count > f.ddof ? f.count - f.ddof : 0;
    const double variance = (f.count == 0 ? 0 : Spread(acc, f.count)) / static_cast<double>(degrees);
    store(f.op == ReduceOp::kStd ? std::sqrt(variance) : variance);
  }

 private:
  // Returns the sum of squared distances from the mean. The sum of squared distances from `centre`, the
  // integer nearest to the mean, is an integer. The correction for the rest of the mean is at most half of
  // it, so no digits cancel.
  WARPLINE_HOST_DEVICE static double Spread(const Acc& acc, std::int64_t count) {
    const auto sum = static_cast<std::int64_t>(acc.sum);
    const std::int64_t half = count / 2;
    const std::int64_t centre = (sum >= 0 ? sum + half : sum - half) / count;
    const std::int64_t rest = sum - centre * count;
    const auto n = static_cast<std::uint64_t>(count), c = static_cast<std::uint64_t>(centre);
    const auto spread = static_cast<std::int64_t>(acc.squares - 2 * c * acc.sum + n * c * c);
    const auto r = static_cast<double>(rest);
    return static_cast<double>(spread) - r * (r / static_cast<double>(count));
  }
};

}  // namespace warpline

#endif  // WARPLINE_KERNELS_REDUCE_INTEGER_MOMENTS_H_
