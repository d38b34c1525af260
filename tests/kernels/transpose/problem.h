// Transpositions as tests write them.
#ifndef WARPLINE_TESTS_KERNELS_TRANSPOSE_PROBLEM_H_
#define WARPLINE_TESTS_KERNELS_TRANSPOSE_PROBLEM_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/problem.h"

namespace warpline {

// row_stride: between the rows of the input, in elements; 0: as many as they have.
inline TransposeProblem MakeTranspose(const std::vector<std::int64_t>& dims, const std::vector<int>& perm,
                                      std::int64_t row_stride = 0) {
  TransposeProblem problem;
  for (std::int64_t dim : dims) problem.shape.Append(dim);
  for (std::size_t i = 0; i < perm.size(); ++i) problem.perm[i] = static_cast<std::int8_t>(perm[i]);
  problem.row_stride = row_stride;
  return problem;
}

}  // namespace warpline

#endif  // WARPLINE_TESTS_KERNELS_TRANSPOSE_PROBLEM_H_
