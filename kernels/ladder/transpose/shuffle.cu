// Variant `shuffle`: no shared memory and no barrier. A warp holds a tile of 32 x 32 elements; lane x has
// column x of it in registers. It transposes the tile in five steps: at step s, s = 16, 8, 4, 2, 1, lanes s
// apart exchange half of their registers, which swaps the off-diagonal s x s blocks. Both sides of global
// memory are coalesced.
//
// Limit: registers: 32 (or 64) per thread for the tile alone, so that fewer warps hide the latency. Global
// memory is accessed in single elements. A warp issues 80 (or 160) shuffles instead of 64 accesses of shared
// memory.
// Next, `tiles`: elements are transposed in registers too, but within one thread, and chunks go through
// shared memory.
#include "kernels/ladder/transpose/kernels.h"
#include "kernels/transpose/launch_tiles.cuh"

namespace warpline {
namespace {

constexpr int kLanes = 32;
// 2 x 2 warps per CTA: together they touch 256 (or 512) bytes of each row, in the input and in the output.
constexpr int kWarpsX = 2, kWarpsY = 2;
constexpr int kThreads = kWarpsX * kWarpsY * kLanes;
constexpr unsigned kAllLanes = 0xffffffff;

// Input: column `lane` of the tile; output: row `lane`. All lanes must call it.
template <typename T>
__device__ void TransposeInWarp(T (&elements)[kLanes], int lane) {
#pragma unroll
  for (int step = kLanes / 2; step > 0; step /= 2) {
    const bool upper = (lane & step) != 0;
#pragma unroll
    for (int i = 0; i < kLanes; ++i) {
      if ((i & step) != 0) continue;
      const T sent = upper ? elements[i] : elements[i + step];
      const T received = __shfl_xor_sync(kAllLanes, sent, step);
      if (upper) {
        elements[i] = received;
      } else {
        elements[i + step] = received;
      }
    }
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    TransposeByShuffles(const T* __restrict__ in, T* __restrict__ out, const __grid_constant__ TileWalk walk,
                        std::int64_t first_tile) {
  const TileOrigin origin =
      LocateTile(walk, first_tile + blockIdx.x, kWarpsX * kTileSide, kWarpsY * kTileSide);
  const int lane = threadIdx.x % kLanes;
  const int warp = threadIdx.x / kLanes;
  const std::int64_t x0 = origin.x + warp % kWarpsX * kTileSide;
  const std::int64_t y0 = origin.y + warp / kWarpsX * kTileSide;
  const auto width = static_cast<int>(min(walk.nx - x0, std::int64_t{kTileSide}));
  const auto height = static_cast<int>(min(walk.ny - y0, std::int64_t{kTileSide}));
  T elements[kLanes];
  {
    const T* from = in + origin.in + (x0 + lane) * walk.in_stride_x + y0 * walk.in_stride_y;
#pragma unroll
    for (int j = 0; j < kLanes; ++j) {
      elements[j] = lane < width && j < height ? from[j * walk.in_stride_y] : T{};
    }
  }
  TransposeInWarp(elements, lane);
  T* to = out + origin.out + x0 * walk.out_stride_x + (y0 + lane) * walk.out_stride_y;
#pragma unroll
  for (int j = 0; j < kLanes; ++j) {
    if (j < width && lane < height) to[j * walk.out_stride_x] = elements[j];
  }
}

}  // namespace

cudaError_t LaunchTransposeShuffle(const TransposeProblem& problem, const Operands& operands,
                                   const CudaContext& /*context*/, cudaStream_t stream) {
  return WithWord(problem.dtype, [&](auto word) {
    using T = decltype(word);
    return LaunchTiles<T>(&TransposeByShuffles<T>, kThreads, kWarpsX * kTileSide, kWarpsY * kTileSide,
                          MakeTileWalk(Canonicalize(problem)), operands, stream);
  });
}

}  // namespace warpline
