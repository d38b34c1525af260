#include "kernels/transpose/joined_tiles.h"

#include <algorithm>
#include <limits>

namespace warpline {
namespace {

// The number of innermost axes that form each side.
struct Depths {
  int x = 0, y = 0;
};

Depths FillMost(const CanonicalTranspose& transpose, std::int64_t tile_x, std::int64_t tile_y) {
  const int rank = transpose.rank;
  Depths best;
  double best_fill = 0;
  std::int64_t nx = 1;
  for (int x = 1; x < rank; ++x) {
    const int outermost = rank - x;  // the outermost axis of x
    // Padded rows are not contiguous.
    if (transpose.in_strides[outermost] != nx) break;
    nx *= transpose.dims[outermost];
    std::int64_t ny = 1;
    for (int y = 1; x + y <= rank && transpose.perm[rank - y] < outermost; ++y) {
      ny *= transpose.dims[transpose.perm[rank - y]];
      const double fill = FillOf(nx, tile_x) * FillOf(ny, tile_y);
      if (fill > best_fill && nx < FastDivisor::kMax && ny < FastDivisor::kMax) {
        best_fill = fill;
        best = {.x = x, .y = y};
      }
    }
  }
  return best;
}

}  // namespace

std::optional<JoinedTiles> JoinSides(const CanonicalTranspose& transpose, std::int64_t element_bytes,
                                     std::int64_t tile_x, std::int64_t tile_y) {
  const int rank = transpose.rank;
  const Depths depths = FillMost(transpose, tile_x, tile_y);
  if (depths.x == 0) return std::nullopt;
  const Strides out_strides = transpose.OutputStrides();
  JoinedTiles tiles;
  TileWalk& walk = tiles.walk;
  walk.in_stride_x = walk.out_stride_y = 1;
  std::int64_t in_extent = 1, out_extent = 1;
  PerAxis<bool> joined{};
  for (int i = 0; i < depths.x; ++i) {
    const int axis = rank - 1 - i;
    joined[axis] = true;
    walk.nx *= transpose.dims[axis];
    tiles.x.Append(transpose.dims[axis], out_strides[axis] * element_bytes);
  }
  for (int i = 0; i < depths.y; ++i) {
    const int axis = transpose.perm[rank - 1 - i];
    joined[axis] = true;
    walk.ny *= transpose.dims[axis];
    tiles.y.Append(transpose.dims[axis], transpose.in_strides[axis] * element_bytes);
  }
  for (int axis = 0; axis < rank; ++axis) {
    in_extent += (transpose.dims[axis] - 1) * transpose.in_strides[axis];
    out_extent *= transpose.dims[axis];
    if (!joined[axis]) {
      walk.batch.Append(transpose.dims[axis], transpose.in_strides[axis], out_strides[axis]);
    }
  }
  if (std::max(in_extent, out_extent) > std::numeric_limits<std::uint32_t>::max() / element_bytes) {
    return std::nullopt;
  }
  return tiles;
}

}  // namespace warpline
