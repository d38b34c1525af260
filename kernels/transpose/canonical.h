// The smallest transposition that moves the same elements: every implementation starts from it.
#ifndef WARPLINE_KERNELS_TRANSPOSE_CANONICAL_H_
#define WARPLINE_KERNELS_TRANSPOSE_CANONICAL_H_

#include <array>
#include <cstdint>

#include "kernels/problem.h"
#include "kernels/shape.h"

namespace warpline {

// Input axes `dims`, all different from 1, row-major; output axis i is input axis perm[i]. No two axes are
// neighbours in both orders. Entries past `rank` are 0.
struct CanonicalTranspose {
  int rank = 0;
  std::array<std::int64_t, kMaxRank> dims{};
  std::array<int, kMaxRank> perm{};

  bool IsIdentity() const { return rank <= 1; }
  // Elements between neighbours along input axis i, in the input and in the output.
  std::array<std::int64_t, kMaxRank> InputStrides() const;
  std::array<std::int64_t, kMaxRank> OutputStrides() const;
};

CanonicalTranspose Canonicalize(const TransposeProblem& problem);

}  // namespace warpline

#endif  // WARPLINE_KERNELS_TRANSPOSE_CANONICAL_H_
