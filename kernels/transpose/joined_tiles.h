// A transposition as a batch of matrices whose sides are several axes: x all that lie side by side at the end
// of the input, y all at the end of the output. Where one axis alone would leave most of a tile empty,
// several fill it; what a matrix's rows are apart is looked up then, as it is no longer one stride.
#ifndef WARPLINE_KERNELS_TRANSPOSE_JOINED_TILES_H_
#define WARPLINE_KERNELS_TRANSPOSE_JOINED_TILES_H_

#include <cstdint>
#include <optional>

#include "kernels/axis_walk.h"
#include "kernels/transpose/canonical.h"
#include "kernels/transpose/tile_walk.h"

namespace warpline {

// The walk has no strides between rows; `x` and `y` have them, in bytes: those of x in the output, of y in
// the input.
struct JoinedTiles {
  TileWalk walk;
  AxisWalk x, y;
};

// With the sides that fill most of tiles of tile_x times tile_y elements. None where the innermost axis of
// the input is not contiguous, or is that of the output too; nor where one side is empty, has
// FastDivisor::kMax elements, or offsets do not fit into 32 bits.
std::optional<JoinedTiles> JoinSides(const CanonicalTranspose& transpose, std::int64_t element_bytes,
                                     std::int64_t tile_x, std::int64_t tile_y);

}  // namespace warpline

#endif  // WARPLINE_KERNELS_TRANSPOSE_JOINED_TILES_H_
