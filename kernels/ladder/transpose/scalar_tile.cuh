// The kernel of the rungs that move single elements through shared memory. They differ in the Layout, which
// defines the positions of elements in the tile, and in the number of elements per thread.
#ifndef WARPLINE_KERNELS_LADDER_TRANSPOSE_SCALAR_TILE_CUH_
#define WARPLINE_KERNELS_LADDER_TRANSPOSE_SCALAR_TILE_CUH_

#include "kernels/ladder/transpose/kernels.h"
#include "kernels/transpose/launch_tiles.cuh"

namespace warpline {

// Rows are contiguous: a column of 4-byte elements lies in one bank.
struct RowMajorTile {
  static constexpr int kElements = kTileSide * kTileSide;
  __device__ static constexpr int Index(int y, int x) { return y * kTileSide + x; }
};

// The CTAs per multiprocessor for which the compiler must leave registers. 4-byte elements need the maximum
// number of threads, even if that spills two registers. 8-byte elements have enough data in flight anyway.
template <typename T, int kRows>
inline constexpr int kScalarTileBlocks = sizeof(T) == 4 ? kResidentThreads / (kTileSide * kRows) : 1;

// Layout: kElements of shared memory; Index(y, x) is the position of element x of row y of the tile. A CTA of
// kTileSide x kRows threads moves one tile. A warp runs along x of the input, then along y of the output, so
// that both are coalesced if the walk has unit strides.
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
    // Issue all loads before the first store.
#pragma unroll
    for (int i = 0; i < kPerThread; ++i) {
      if (lane < width && row + i * kRows < height) elements[i] = from[i * (kRows * walk.in_stride_y)];
    }
#pragma unroll
    for (int i = 0; i < kPerThread; ++i) tile[Layout::Index(row + i * kRows, lane)] = elements[i];
  }
  __syncthreads();

  // Same here.
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

#endif  // WARPLINE_KERNELS_LADDER_TRANSPOSE_SCALAR_TILE_CUH_
