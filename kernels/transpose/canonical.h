// The smallest transposition that moves the same elements. Every implementation starts from it.
#ifndef WARPLINE_KERNELS_TRANSPOSE_CANONICAL_H_
#define WARPLINE_KERNELS_TRANSPOSE_CANONICAL_H_

#include <cstdint>

#include "kernels/problem.h"
#include "kernels/shape.h"

namespace warpline {

// The input axes `dims`, outermost first. None has size 1. Output axis i is input axis perm[i]. No two axes
// can be merged. The output is dense. Entries at and after `rank` are 0.
struct CanonicalTranspose {
  int rank = 0;
  PerAxis<std::int64_t> dims{};
  PerAxis<int> perm{};
  Strides in_strides{};  // input stride of input axis i, in elements

  bool IsIdentity() const { return rank == 0 || (rank == 1 && in_strides[0] == 1); }
  // Returns the strides of the output.
  Strides OutputStrides() const;
};

CanonicalTranspose Canonicalize(const TransposeProblem& problem);

// Returns the same transposition for elements that are `factor` times as large. The innermost axis must stay
// innermost and be contiguous. Its size and all other strides must be multiples of `factor`.
CanonicalTranspose WithWiderElements(const CanonicalTranspose& transpose, std::int64_t factor);

}  // namespace warpline

#endif  // WARPLINE_KERNELS_TRANSPOSE_CANONICAL_H_
