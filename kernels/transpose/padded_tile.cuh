#ifndef WARPLINE_KERNELS_TRANSPOSE_PADDED_TILE_CUH_
#define WARPLINE_KERNELS_TRANSPOSE_PADDED_TILE_CUH_

#include "kernels/transpose/launch_tiles.cuh"

namespace warpline {

// A row has one element more than there are banks, so that neither rows nor columns have conflicts. But rows
// begin at odd elements, and are not aligned to 16-byte chunks.
struct PaddedTile {
  static constexpr int kElements = kTileSide * (kTileSide + 1);
  __device__ static constexpr int Index(int y, int x) { return y * (kTileSide + 1) + x; }
};

}  // namespace warpline

#endif  // WARPLINE_KERNELS_TRANSPOSE_PADDED_TILE_CUH_
