// The rungs of transposes share these rules: whether they support a problem.
#ifndef WARPLINE_KERNELS_TRANSPOSE_RUNGS_H_
#define WARPLINE_KERNELS_TRANSPOSE_RUNGS_H_

#include <cstdint>

#include "kernels/problem.h"
#include "kernels/transpose/swizzle.h"
#include "kernels/transpose/tile_walk.h"
#include "kernels/variant.h"

namespace warpline {

// True for elements of 4 or 8 bytes, the sizes that they support.
inline bool IsWord(DType dtype) { return SizeOf(dtype) == 4 || SizeOf(dtype) == 8; }

// True if all vectors of 16 bytes are aligned, for aligned operands.
inline bool TakesVectors(const TransposeProblem& problem, const DeviceTraits&) {
  const auto vector = static_cast<std::int64_t>(kChunkBytes / SizeOf(problem.dtype));
  return problem.shape.Count() == 0 || MakeTileWalk(Canonicalize(problem)).TakesVectors(vector);
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_TRANSPOSE_RUNGS_H_
