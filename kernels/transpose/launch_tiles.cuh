// Launches of kernels that move a tile with each CTA, by the size of an element. For .cu files.
#ifndef WARPLINE_KERNELS_TRANSPOSE_LAUNCH_TILES_CUH_
#define WARPLINE_KERNELS_TRANSPOSE_LAUNCH_TILES_CUH_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/launch_grids.h"
#include "kernels/transpose/tile_walk.h"
#include "kernels/variant.h"

namespace warpline {

// Threads that fill a multiprocessor of the architecture that the kernel is compiled for.
#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ == 860 || __CUDA_ARCH__ == 890 || __CUDA_ARCH__ >= 1200)
inline constexpr int kResidentThreads = 1536;
#else
inline constexpr int kResidentThreads = 2048;
#endif

// Side of the square tiles: the number of lanes of a warp.
inline constexpr int kTileSide = 32;

template <typename T>
using TileKernel = void(const T* in, T* out, const TileWalk walk, std::int64_t first_tile);

// Calls function(word{}) with the unsigned integer type of the element's size.
template <typename Function>
cudaError_t WithWord(DType dtype, Function function) {
  switch (SizeOf(dtype)) {
    case 4:
      return function(std::uint32_t{});
    case 8:
      return function(std::uint64_t{});
    default:
      return cudaErrorNotSupported;
  }
}

// Launches one CTA of `threads` threads per tile of tile_x x tile_y elements. An empty problem has no tiles.
template <typename T>
cudaError_t LaunchTiles(TileKernel<T>* kernel, int threads, std::int64_t tile_x, std::int64_t tile_y,
                        TileWalk walk, const Operands& operands, cudaStream_t stream) {
  walk.CutInto(tile_x, tile_y);
  return LaunchGrids(walk.Tiles(), [&](std::int64_t first, unsigned grid) {
    kernel<<<grid, threads, 0, stream>>>(static_cast<const T*>(operands.in[0]), static_cast<T*>(operands.out),
                                         walk, first);
  });
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_TRANSPOSE_LAUNCH_TILES_CUH_
