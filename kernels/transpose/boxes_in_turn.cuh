// Code shared by the kernels in which a CTA moves several boxes and keeps positions of elements in registers
// (equal_boxes.cu, small_blocks.cu).
#ifndef WARPLINE_KERNELS_TRANSPOSE_BOXES_IN_TURN_CUH_
#define WARPLINE_KERNELS_TRANSPOSE_BOXES_IN_TURN_CUH_

#include <algorithm>
#include <cstdint>

#include "kernels/ceil_div.h"
#include "kernels/launch_grids.h"

namespace warpline {

// Return the two numbers that are packed in a word. Volatile, so that they are unpacked where they are used.
// Otherwise the compiler would unpack them before the loop over boxes, and spill half of them.
__device__ inline std::uint32_t LowerHalf(std::uint32_t word) {
  std::uint32_t half;
  asm volatile("and.b32 %0, %1, 0xffff;" : "=r"(half) : "r"(word));
  return half;
}
__device__ inline std::uint32_t UpperHalf(std::uint32_t word) {
  std::uint32_t half;
  asm volatile("shr.u32 %0, %1, 16;" : "=r"(half) : "r"(word));
  return half;
}

// Calls launch(grid_x) so that each CTA has at most `most` boxes, and all multiprocessors have the same
// amount of work. `ctas_each` CTAs run on a multiprocessor at a time.
template <typename Launch>
cudaError_t LaunchInTurn(std::int64_t boxes, int most, int ctas_each, int multiprocessors, Launch launch) {
  const std::int64_t at_once = std::int64_t{ctas_each} * std::max(1, multiprocessors);
  const std::int64_t ctas = std::min(boxes, at_once * CeilDiv(boxes, at_once * most));
  if (ctas > kMaxGridX) return cudaErrorNotSupported;
  launch(static_cast<unsigned>(ctas));
  return cudaGetLastError();
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_TRANSPOSE_BOXES_IN_TURN_CUH_
