// A transposition as a batch of matrices whose sides are several axes: x all that lie side by side at the end
// of the input, y all at the end of the output. Where one axis alone would leave most of a tile empty,
// several fill it; what a matrix's rows are apart is looked up then, as it is no longer one stride.
#ifndef WARPLINE_KERNELS_TRANSPOSE_JOINED_TILES_H_
#define WARPLINE_KERNELS_TRANSPOSE_JOINED_TILES_H_

#include <cstdint>
#include <optional>

#include "kernels/fast_divisor.h"
#include "kernels/host_device.h"
#include "kernels/shape.h"
#include "kernels/transpose/canonical.h"
#include "kernels/transpose/tile_walk.h"

namespace warpline {

// The axes of a side, the innermost first, and how far apart their elements are where they do not lie side by
// side: those of x in the output, those of y in the input; in bytes.
struct JoinedSide {
  int rank = 0;
  FastDivisor sizes[kMaxRank] = {};
  std::uint32_t strides[kMaxRank] = {};

  void Append(std::int64_t size, std::int64_t stride) {
    sizes[rank] = FastDivisor(size);
    strides[rank] = static_cast<std::uint32_t>(stride);
    ++rank;
  }
};

// Of the element at `index` of a side.
WARPLINE_HOST_DEVICE inline std::uint32_t OffsetAt(const JoinedSide& side, std::uint32_t index) {
  std::uint32_t offset = 0;
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
  for (int i = 0; i < kMaxRank; ++i) {
    if (i >= side.rank) break;
    const std::uint32_t coordinate = i + 1 == side.rank ? index : TakeRemainder(index, side.sizes[i]);
    offset += coordinate * side.strides[i];
  }
  return offset;
}

// The walk has no strides between rows, `x` and `y` have them.
struct JoinedTiles {
  TileWalk walk;
  JoinedSide x, y;
};

// With the sides that fill most of tiles of tile_x times tile_y elements. None where the innermost axis of
// the input is not contiguous, or is that of the output too; nor where one side is empty, has
// FastDivisor::kMax elements, or offsets do not fit into 32 bits.
std::optional<JoinedTiles> JoinSides(const CanonicalTranspose& transpose, std::int64_t element_bytes,
                                     std::int64_t tile_x, std::int64_t tile_y);

}  // namespace warpline

#endif  // WARPLINE_KERNELS_TRANSPOSE_JOINED_TILES_H_
