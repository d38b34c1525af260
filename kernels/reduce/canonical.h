// The smallest reduction that gives the same results. Every implementation starts from it.
#ifndef WARPLINE_KERNELS_REDUCE_CANONICAL_H_
#define WARPLINE_KERNELS_REDUCE_CANONICAL_H_

#include <cstdint>

#include "kernels/host_device.h"
#include "kernels/problem.h"
#include "kernels/shape.h"
#include "kernels/take_remainder.h"

namespace warpline {

// Axes of one kind (kept or reduced), outermost first, with their strides in the input, in elements.
struct AxisList {
  // Without unit axes, and with neighbouring axes of one kind merged, the two kinds alternate. So each has at
  // most half of the axes, plus one if padded rows separate the last two.
  static constexpr int kMaxAxes = kMaxRank / 2 + 1;

  int rank = 0;
  std::int64_t dims[kMaxAxes] = {};  // C arrays, because device code cannot index a std::array
  std::int64_t strides[kMaxAxes] = {};

  std::int64_t Count() const {
    std::int64_t count = 1;
    for (int i = 0; i < rank; ++i) count *= dims[i];
    return count;
  }

  // Returns the offset of the row-major `index` over these axes; 0 <= index < Count().
  WARPLINE_HOST_DEVICE std::int64_t Offset(std::int64_t index) const {
    std::int64_t offset = 0;
    for (int i = rank - 1; i > 0; --i) offset += TakeRemainder(index, dims[i]) * strides[i];
    return rank > 0 ? offset + index * strides[0] : 0;
  }

  // Same over all axes except the innermost.
  WARPLINE_HOST_DEVICE std::int64_t OffsetOfRun(std::int64_t index) const {
    std::int64_t offset = 0;
    for (int i = rank - 2; i > 0; --i) offset += TakeRemainder(index, dims[i]) * strides[i];
    return rank > 1 ? offset + index * strides[0] : 0;
  }
};

// Result o is the reduction of the elements kept.Offset(o) + reduced.Offset(r), 0 <= r < reduced_count. Both
// indices are also row-major over the axes of the problem, with one exception: if no index is asked for and
// the innermost axis is kept, the longest reduced axis comes last.
struct CanonicalReduce {
  AxisList kept, reduced;
  std::int64_t results = 1;
  std::int64_t reduced_count = 1;

  // Returns whether the elements of one result are contiguous in memory (the innermost axis has stride 1).
  bool InnermostReduced() const { return reduced.rank > 0 && reduced.strides[reduced.rank - 1] == 1; }
};

CanonicalReduce Canonicalize(const ReduceProblem& problem);

}  // namespace warpline

#endif  // WARPLINE_KERNELS_REDUCE_CANONICAL_H_
