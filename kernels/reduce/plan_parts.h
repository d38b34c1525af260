// Parts of the plans of all shapes of reductions.
#ifndef WARPLINE_KERNELS_REDUCE_PLAN_PARTS_H_
#define WARPLINE_KERNELS_REDUCE_PLAN_PARTS_H_

#include <algorithm>
#include <bit>
#include <cstdint>

#include "kernels/problem.h"
#include "kernels/reduce/canonical.h"

namespace warpline {

inline constexpr int kWarpLanes = 32;

// Returns the smallest power of two that is at least `value`, but at most `limit`, which is one.
inline int CeilPow2(std::int64_t value, int limit) {
  return static_cast<int>(
      std::bit_ceil(static_cast<std::uint64_t>(std::clamp<std::int64_t>(value, 1, limit))));
}

// Returns whether the first `count` strides are multiples of `of`.
inline bool AreMultiples(const AxisList& axes, int count, std::int64_t of) {
  return std::all_of(axes.strides, axes.strides + count, [of](std::int64_t s) { return s % of == 0; });
}

// Returns the size of an element.
inline std::int64_t ElementBytes(const ReduceProblem& problem) {
  return static_cast<std::int64_t>(SizeOf(problem.dtype));
}

// Returns whether the accumulator of a result is one number. It matches kHasNumber in the kernels.
inline bool HasNumber(ReduceOp op) {
  switch (op) {
    case ReduceOp::kArgmin:
    case ReduceOp::kArgmax:
    case ReduceOp::kVar:
    case ReduceOp::kStd:
    case ReduceOp::kLogSumExp:
      return false;
    default:
      return true;
  }
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_REDUCE_PLAN_PARTS_H_
