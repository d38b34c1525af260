// Variant `naive_write`: one thread per element, warps along rows of the output. So writes are coalesced, and
// reads go along a column of the input.
//
// Limit: each element that a warp reads lies in a different 32-byte sector. The other warps of the CTA, which
// has 32 elements along x, need the rest of the sector. L1 serves them if it still holds the sector.
// Next, `shared`: coalesced reads too, through a tile in shared memory.
#include "kernels/ladder/transpose/kernels.h"
#include "kernels/transpose/launch_tiles.cuh"

namespace warpline {
namespace {

constexpr int kThreads = kTileSide * kTileSide;

template <typename T>
__global__ void __launch_bounds__(kThreads)
    CopyAlongOutput(const T* __restrict__ in, T* __restrict__ out, const __grid_constant__ TileWalk walk,
                    std::int64_t first_tile) {
  const TileOrigin origin = LocateTile(walk, first_tile + blockIdx.x, kTileSide, kTileSide);
  const std::int64_t x = origin.x + threadIdx.x / kTileSide;
  const std::int64_t y = origin.y + threadIdx.x % kTileSide;
  if (x >= walk.nx || y >= walk.ny) return;
  out[origin.out + x * walk.out_stride_x + y * walk.out_stride_y] =
      in[origin.in + x * walk.in_stride_x + y * walk.in_stride_y];
}

}  // namespace

cudaError_t LaunchTransposeNaiveWrite(const TransposeProblem& problem, const Operands& operands,
                                      const CudaContext& /*context*/, cudaStream_t stream) {
  return WithWord(problem.dtype, [&](auto word) {
    using T = decltype(word);
    return LaunchTiles<T>(&CopyAlongOutput<T>, kThreads, kTileSide, kTileSide,
                          MakeTileWalk(Canonicalize(problem)), operands, stream);
  });
}

}  // namespace warpline
