// A transposition as a batch of 2-D transpositions that are cut into tiles, one per CTA. Every kernel that
// moves tiles locates its tile in this way.
#ifndef WARPLINE_KERNELS_TRANSPOSE_TILE_WALK_H_
#define WARPLINE_KERNELS_TRANSPOSE_TILE_WALK_H_

#include <cstdint>

#include "kernels/ceil_div.h"
#include "kernels/host_device.h"
#include "kernels/take_remainder.h"
#include "kernels/transpose/canonical.h"
#include "kernels/transpose/strided_copy.h"

namespace warpline {

// Returns the fraction of the tiles along a side that is in use.
inline double FillOf(std::int64_t size, std::int64_t tile) {
  return static_cast<double>(size) / static_cast<double>(CeilDiv(size, tile) * tile);
}

// Tiles lie between the axes x and y; `batch` walks over the other axes. Sizes and strides are in elements.
struct TileWalk {
  std::int64_t nx = 1, ny = 1;
  std::int64_t in_stride_x = 0, in_stride_y = 0;
  std::int64_t out_stride_x = 0, out_stride_y = 0;
  // The tiles of one matrix of the batch; set by CutInto. Tiles are numbered along x first. But in a very
  // wide matrix, the CTAs that run at the same time would then write only a piece of each output row, and
  // other CTAs would write the next piece when the first is no longer in the L2 cache. So there, tiles are
  // numbered down bands of band_x tiles.
  std::int64_t tiles_x = 0, tiles_y = 0, band_x = 0;
  StridedCopy batch;

  void CutInto(std::int64_t tile_x, std::int64_t tile_y);
  std::int64_t Tiles() const { return tiles_x * tiles_y * batch.Count(); }
  // Returns whether vectors of `elements` elements, aligned to their size, can be read along x and written
  // along y.
  bool TakesVectors(std::int64_t elements) const;
};

// x is the innermost axis of the input, y that of the output. If these are the same axis, y is the next axis
// outwards in the output. If there is none, ny is 1. So any problem can be a walk, although not a fast one.
TileWalk MakeTileWalk(const CanonicalTranspose& transpose);

// The position where a tile begins: its coordinates, and the offsets of its matrix in input and output.
struct TileOrigin {
  std::int64_t x = 0, y = 0;
  std::int64_t in = 0, out = 0;
};

// Locates tile `index` in [0, Tiles()). Tiles go along x first.
WARPLINE_HOST_DEVICE inline TileOrigin LocateTile(const TileWalk& walk, std::int64_t index,
                                                  std::int64_t tile_x, std::int64_t tile_y) {
  TileOrigin origin;
  origin.x = TakeRemainder(index, walk.tiles_x) * tile_x;
  if (walk.batch.rank == 0) {
    origin.y = index * tile_y;
    return origin;
  }
  origin.y = TakeRemainder(index, walk.tiles_y) * tile_y;
  for (int axis = walk.batch.rank - 1; axis >= 0; --axis) {
    const std::int64_t coordinate = TakeRemainder(index, walk.batch.dims[axis]);
    origin.in += coordinate * walk.batch.in_strides[axis];
    origin.out += coordinate * walk.batch.out_strides[axis];
  }
  return origin;
}

// Same, in bands of band_x tiles. A separate function, because it needs more registers than some kernels
// have.
WARPLINE_HOST_DEVICE inline TileOrigin LocateTileInBands(const TileWalk& walk, std::int64_t index,
                                                         std::int64_t tile_x, std::int64_t tile_y) {
  TileOrigin origin;
  if (walk.band_x < walk.tiles_x) {
    std::int64_t of_matrix = index;
    index = 0;
    if (walk.batch.rank > 0) {
      index = of_matrix;
      of_matrix = TakeRemainder(index, walk.tiles_x * walk.tiles_y);
    }
    std::int64_t down = TakeRemainder(of_matrix, walk.band_x * walk.tiles_y);
    const std::int64_t first = of_matrix * walk.band_x, rest = walk.tiles_x - first;
    origin.x = (first + TakeRemainder(down, rest < walk.band_x ? rest : walk.band_x)) * tile_x;
    origin.y = down * tile_y;
  } else {
    origin.x = TakeRemainder(index, walk.tiles_x) * tile_x;
    if (walk.batch.rank == 0) {
      origin.y = index * tile_y;
      return origin;
    }
    origin.y = TakeRemainder(index, walk.tiles_y) * tile_y;
  }
  for (int axis = walk.batch.rank - 1; axis >= 0; --axis) {
    const std::int64_t coordinate = TakeRemainder(index, walk.batch.dims[axis]);
    origin.in += coordinate * walk.batch.in_strides[axis];
    origin.out += coordinate * walk.batch.out_strides[axis];
  }
  return origin;
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_TRANSPOSE_TILE_WALK_H_
