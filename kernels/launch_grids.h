// Splits a launch over several grids. All our kernels number their blocks in grid.x only, because y and z end
// at 65535.
#ifndef WARPLINE_KERNELS_LAUNCH_GRIDS_H_
#define WARPLINE_KERNELS_LAUNCH_GRIDS_H_

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>

#include "kernels/ceil_div.h"

namespace warpline {

inline constexpr std::int64_t kMaxGridX = 0x7fffffff;

// Calls launch(first_block, grid_x) until blocks [0, blocks) are enqueued. This is one call, except for huge
// tensors with tiny tiles. A grid-stride loop would need only one launch, but would cost registers and time
// in all other cases.
template <typename Launch>
cudaError_t LaunchGrids(std::int64_t blocks, Launch launch) {
  for (std::int64_t first = 0; first < blocks; first += kMaxGridX) {
    launch(first, static_cast<unsigned>(std::min(kMaxGridX, blocks - first)));
    if (cudaError_t error = cudaGetLastError(); error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_LAUNCH_GRIDS_H_
