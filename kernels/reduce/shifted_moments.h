// var and std of f32, f16 and bf16, computed in f64 from distances to one element of each result.
#ifndef WARPLINE_KERNELS_REDUCE_SHIFTED_MOMENTS_H_
#define WARPLINE_KERNELS_REDUCE_SHIFTED_MOMENTS_H_

#include <cmath>
#include <cstdint>

#include "kernels/host_device.h"
#include "kernels/reduce/monoids.h"

namespace warpline {

// Sums of x - shift and of their squares.
struct ShiftedMoments {
  double shift, sum, squares;
};

// All accumulators of a result have its first element as their shift. So two additions combine them; those of
// MomentsMonoid need a division. The disadvantage: the variance is the difference of two sums that are 1 +
// (shift - mean)^2 / variance times as large. This factor is about 2 for ordinary data. It is at most the
// number of elements n, if the first element is an outlier that causes the whole variance. Then the relative
// error is about n 2^-53 times that of the sums. For 2^20 elements this is still below the rounding to f32.
struct ShiftedMomentsMonoid {
  using Value = double;
  using Acc = ShiftedMoments;

  WARPLINE_HOST_DEVICE static Acc Identity() { return {0, 0, 0}; }
  WARPLINE_HOST_DEVICE static void Add(Acc& acc, double x, std::int64_t) {
    const double distance = x - acc.shift;
    acc.sum += distance;
    acc.squares += distance * distance;
  }
  WARPLINE_HOST_DEVICE static Acc Combine(const Acc& a, const Acc& b) {
    return {a.shift, a.sum + b.sum, a.squares + b.squares};
  }
  template <typename Store>
  WARPLINE_HOST_DEVICE static void Finish(const Acc& acc, const ReduceFinish& f, Store&& store) {
    const double spread = acc.squares - acc.sum * (acc.sum / static_cast<double>(f.count));
    const std::int64_t degrees = f.count > f.ddof ? f.count - f.ddof : 0;
    // Negative only by rounding; NaN without elements. NaN stays.
    const double variance = (spread < 0 ? 0 : spread) / static_cast<double>(degrees);
    store(f.op == ReduceOp::kStd ? std::sqrt(variance) : variance);
  }
};

}  // namespace warpline

#endif  // WARPLINE_KERNELS_REDUCE_SHIFTED_MOMENTS_H_
