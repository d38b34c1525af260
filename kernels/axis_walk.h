// Offsets of elements that are numbered along several axes.
#ifndef WARPLINE_KERNELS_AXIS_WALK_H_
#define WARPLINE_KERNELS_AXIS_WALK_H_

#include <cstdint>

#include "kernels/fast_divisor.h"
#include "kernels/host_device.h"
#include "kernels/shape.h"

namespace warpline {

// The axes, the innermost first: how to divide by their sizes, and how far apart neighbours along each are.
// Numbers of elements, and offsets but for OffsetAt, are less than FastDivisor::kMax: 64 bits would take
// several times the instructions.
struct AxisWalk {
  int rank = 0;
  FastDivisor sizes[kMaxRank] = {};
  std::uint32_t strides[kMaxRank] = {};

  // From the innermost axis outwards.
  void Append(std::int64_t size, std::int64_t stride) {
    sizes[rank] = FastDivisor(size);
    strides[rank] = static_cast<std::uint32_t>(stride);
    ++rank;
  }
};

// Returns the offset of the element at `index`, in 32 bits. The loop is unrolled so that whatever is known
// about an axis becomes operands of instructions.
WARPLINE_HOST_DEVICE inline std::uint32_t OffsetAt(const AxisWalk& walk, std::uint32_t index) {
  std::uint32_t offset = 0;
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
  for (int i = 0; i < kMaxRank; ++i) {
    if (i >= walk.rank) break;
    const std::uint32_t coordinate = i + 1 == walk.rank ? index : TakeRemainder(index, walk.sizes[i]);
    offset += coordinate * walk.strides[i];
  }
  return offset;
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_AXIS_WALK_H_
