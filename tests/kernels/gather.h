// Computes what a transposition moves where, with the plainest loop.
#ifndef WARPLINE_TESTS_KERNELS_GATHER_H_
#define WARPLINE_TESTS_KERNELS_GATHER_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/problem.h"

namespace warpline {

// For each element of the output, in order, its offset in the input.
inline std::vector<std::int64_t> Gather(const TransposeProblem& problem) {
  const Strides in_strides = RowMajorStrides(problem.shape, problem.row_stride);
  std::vector<std::int64_t> offsets = {0};
  for (int axis = 0; axis < problem.shape.rank; ++axis) {
    std::vector<std::int64_t> next;
    for (std::int64_t offset : offsets) {
      for (std::int64_t i = 0; i < problem.shape[problem.perm[axis]]; ++i) {
        next.push_back(offset + i * in_strides[problem.perm[axis]]);
      }
    }
    offsets = std::move(next);
  }
  return offsets;
}

}  // namespace warpline

#endif  // WARPLINE_TESTS_KERNELS_GATHER_H_
