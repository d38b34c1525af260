// A transposition as a batch of matrices whose sides consist of several axes: x of axes that are contiguous
// at the end of the input, y of axes at the end of the output. If a single axis would leave most of a tile
// empty, several axes fill it. The offset of a row is then no longer a multiple of one stride, and is looked
// up.
#ifndef WARPLINE_KERNELS_TRANSPOSE_JOINED_TILES_H_
#define WARPLINE_KERNELS_TRANSPOSE_JOINED_TILES_H_

#include <cstdint>
#include <optional>

#include "kernels/axis_walk.h"
#include "kernels/transpose/canonical.h"
#include "kernels/transpose/tile_walk.h"

namespace warpline {

// The walk has no strides between rows. `x` and `y` have them, in bytes: x for the output, y for the input.
struct JoinedTiles {
  TileWalk walk;
  AxisWalk x, y;
};

// Chooses the sides that best fill tiles of tile_x x tile_y elements. Returns nothing if the innermost axis
// of the input is not contiguous, or is also that of the output. Also returns nothing if one side is empty, a
// side has FastDivisor::kMax elements or more, or offsets do not fit into 32 bits.
std::optional<JoinedTiles> JoinSides(const CanonicalTranspose& transpose, std::int64_t element_bytes,
                                     std::int64_t tile_x, std::int64_t tile_y);

}  // namespace warpline

#endif  // WARPLINE_KERNELS_TRANSPOSE_JOINED_TILES_H_
