// The kernel of the rungs that move single elements through shared memory. They differ in where the tile
// keeps them, which is a Layout, and in how many elements a thread moves.
#ifndef WARPLINE_KERNELS_TRANSPOSE_SCALAR_TILE_CUH_
#define WARPLINE_KERNELS_TRANSPOSE_SCALAR_TILE_CUH_

#include "kernels/transpose/launch_tiles.cuh"
#include "kernels/transpose/transpose_kernels.h"

namespace warpline {

// Layout: kElements of shared memory; Index(y, x) is the place of element x of row y of the tile.
// A CTA of kTileSide x kRows threads moves one tile; a warp runs along x of the input, then along y of the
// output, so that both are coalesced wherever the walk has unit strides.
template <typename T, typename Layout, int kRows>
__global__ void __launch_bounds__(kTileSide* kRows)
    TransposeThroughTile(const T* __restrict__ in, T* __restrict__ out, const __grid_constant__ TileWalk walk,
                         std::int64_t first_tile) {
  constexpr int kPerThread = kTileSide / kRows;
  __shared__ T tile[Layout::kElements];
  const TileOrigin origin = LocateTile(walk, first_tile + blockIdx.x, kTileSide, kTileSide);
  const int lane = threadIdx.x % kTileSide;
  const int row = threadIdx.x / kTileSide;
  {
    const std::int64_t x = origin.x + lane;
    const T* from = in + origin.in + x * walk.in_stride_x;
    T elements[kPerThread] = {};  // all loads are in flight before the first is stored
#pragma unroll
    for (int i = 0; i < kPerThread; ++i) {
      const std::int64_t y = origin.y + row + i * kRows;
      if (x < walk.nx && y < walk.ny) elements[i] = from[y * walk.in_stride_y];
    }
#pragma unroll
    for (int i = 0; i < kPerThread; ++i) tile[Layout::Index(row + i * kRows, lane)] = elements[i];
  }
  __syncthreads();

  const std::int64_t y = origin.y + lane;
  T* to = out + origin.out + y * walk.out_stride_y;
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    const std::int64_t x = origin.x + row + i * kRows;
    if (x < walk.nx && y < walk.ny) to[x * walk.out_stride_x] = tile[Layout::Index(lane, row + i * kRows)];
  }
}

template <typename Layout, int kRows>
cudaError_t LaunchThroughTile(const TransposeProblem& problem, const Operands& operands,
                              cudaStream_t stream) {
  return WithWord(problem.dtype, [&](auto word) {
    using T = decltype(word);
    return LaunchTiles<T>(&TransposeThroughTile<T, Layout, kRows>, kTileSide * kRows, kTileSide, kTileSide,
                          MakeTileWalk(Canonicalize(problem)), operands, stream);
  });
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_TRANSPOSE_SCALAR_TILE_CUH_
