// The smallest transposition that moves the same elements: every implementation starts from it.
#ifndef WARPLINE_KERNELS_TRANSPOSE_CANONICAL_H_
#define WARPLINE_KERNELS_TRANSPOSE_CANONICAL_H_

#include <cstdint>

#include "kernels/problem.h"
#include "kernels/shape.h"

namespace warpline {

// Input axes `dims`, all different from 1, outermost first; output axis i is input axis perm[i]. No two axes
// could be one. The output is dense. Entries past `rank` are 0.
struct CanonicalTranspose {
  int rank = 0;
  PerAxis<std::int64_t> dims{};
  PerAxis<int> perm{};
  Strides in_strides{};  // elements between neighbours along input axis i, in the input

  bool IsIdentity() const { return rank == 0 || (rank == 1 && in_strides[0] == 1); }
  // The same in the output.
  Strides OutputStrides() const;
};

CanonicalTranspose Canonicalize(const TransposeProblem& problem);

// The same transposition of elements `factor` times as large, where the innermost axis stays innermost, is
// contiguous, and it and all other strides are multiples of `factor`.
CanonicalTranspose WithWiderElements(const CanonicalTranspose& transpose, std::int64_t factor);

}  // namespace warpline

#endif  // WARPLINE_KERNELS_TRANSPOSE_CANONICAL_H_
