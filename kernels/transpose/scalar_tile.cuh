// The kernel of the rungs that move single elements through shared memory. They differ in where the tile
// keeps them, which is a Layout, and in how many elements a thread moves.
#ifndef WARPLINE_KERNELS_TRANSPOSE_SCALAR_TILE_CUH_
#define WARPLINE_KERNELS_TRANSPOSE_SCALAR_TILE_CUH_

#include "kernels/transpose/kernels.h"
#include "kernels/transpose/launch_tiles.cuh"

namespace warpline {

// Rows follow each other: a column of elements of 4 bytes lies in one bank.
struct RowMajorTile {
  static constexpr int kElements = kTileSide * kTileSide;
  __device__ static constexpr int Index(int y, int x) { return y * kTileSide + x; }
};

// CTAs of a multiprocessor that the compiler must leave registers for. Elements of 4 bytes need all the
// threads there can be, even if that spills two registers; of 8 bytes enough is in flight anyway.
template <typename T, int kRows>
inline constexpr int kScalarTileBlocks = sizeof(T) == 4 ? kResidentThreads / (kTileSide * kRows) : 1;

// Layout: kElements of shared memory; Index(y, x) is the place of element x of row y of the tile.
// A CTA of kTileSide x kRows threads moves one tile; a warp runs along x of the input, then along y of the
// output, so that both are coalesced wherever the walk has unit strides.
template <typename T, typename Layout, int kRows>
__global__ void __launch_bounds__(kTileSide* kRows, kScalarTileBlocks<T, kRows>)
    TransposeThroughTile(const T* __restrict__ in, T* __restrict__ out, const __grid_constant__ TileWalk walk,
                         std::int64_t first_tile) {
  constexpr int kPerThread = kTileSide / kRows;
  __shared__ T tile[Layout::kElements];
  const TileOrigin origin = LocateTile(walk, first_tile + blockIdx.x, kTileSide, kTileSide);
  const int lane = threadIdx.x % kTileSide;
  const int row = threadIdx.x / kTileSide;
  // The size of the tile. Coordinates inside the tile fit into an int, so that one instruction compares them.
  const auto width = static_cast<int>(min(walk.nx - origin.x, std::int64_t{kTileSide}));
  const auto height = static_cast<int>(min(walk.ny - origin.y, std::int64_t{kTileSide}));
  T elements[kPerThread] = {};
  {
    const T* from =
        in + origin.in + (origin.x + lane) * walk.in_stride_x + (origin.y + row) * walk.in_stride_y;
    // All loads are in flight before the first is stored.
#pragma unroll
    for (int i = 0; i < kPerThread; ++i) {
      if (lane < width && row + i * kRows < height) elements[i] = from[i * (kRows * walk.in_stride_y)];
    }
#pragma unroll
    for (int i = 0; i < kPerThread; ++i) tile[Layout::Index(row + i * kRows, lane)] = elements[i];
  }
  __syncthreads();

  // Here, too.
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) elements[i] = tile[Layout::Index(lane, row + i * kRows)];
  T* to = out + origin.out + (origin.x + row) * walk.out_stride_x + (origin.y + lane) * walk.out_stride_y;
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    if (lane < height && row + i * kRows < width) to[i * (kRows * walk.out_stride_x)] = elements[i];
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
