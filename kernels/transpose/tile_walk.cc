#include "kernels/transpose/tile_walk.h"

#include "kernels/ceil_div.h"

namespace warpline {

void TileWalk::CutInto(std::int64_t tile_x, std::int64_t tile_y) {
  tiles_x = CeilDiv(nx, tile_x);
  tiles_y = CeilDiv(ny, tile_y);
  // Above this width, the CTAs that run at the same time would cover less than four rows of tiles.
  constexpr std::int64_t kMaxTilesInOneBand = 256, kBand = 32;
  band_x = tiles_x > kMaxTilesInOneBand && tiles_y > 1 ? kBand : tiles_x;
}

bool TileWalk::TakesVectors(std::int64_t elements) const {
  if (in_stride_x != 1 || out_stride_y != 1) return false;
  bool multiples =
      nx % elements == 0 && ny % elements == 0 && in_stride_y % elements == 0 && out_stride_x % elements == 0;
  for (int axis = 0; axis < batch.rank; ++axis) {
    multiples =
        multiples && batch.in_strides[axis] % elements == 0 && batch.out_strides[axis] % elements == 0;
  }
  return multiples;
}

TileWalk MakeTileWalk(const CanonicalTranspose& transpose) {
  TileWalk walk;
  const int rank = transpose.rank;
  if (rank == 0) return walk;  // one element
  const Strides out_strides = transpose.OutputStrides();
  const int x = rank - 1;
  int y = transpose.perm[rank - 1];
  if (y == x) y = rank > 1 ? transpose.perm[rank - 2] : -1;
  walk.nx = transpose.dims[x];
  walk.in_stride_x = transpose.in_strides[x];
  walk.out_stride_x = out_strides[x];
  if (y >= 0) {
    walk.ny = transpose.dims[y];
    walk.in_stride_y = transpose.in_strides[y];
    walk.out_stride_y = out_strides[y];
  }
  for (int axis = 0; axis < rank; ++axis) {
    if (axis == x || axis == y) continue;
    walk.batch.Append(transpose.dims[axis], transpose.in_strides[axis], out_strides[axis]);
  }
  return walk;
}

}  // namespace warpline
