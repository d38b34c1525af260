// Computes offsets of elements that are numbered along several axes.
#ifndef WARPLINE_KERNELS_AXIS_WALK_H_
#define WARPLINE_KERNELS_AXIS_WALK_H_

#include <cstdint>

#include "kernels/fast_divisor.h"
#include "kernels/host_device.h"
#include "kernels/shape.h"

namespace warpline {

// The axes, innermost first: dividers by their sizes, and the strides. Numbers of elements, and offsets
// except those of OffsetAt, must be less than FastDivisor::kMax: 64-bit arithmetic would need several times
// as many instructions.
struct AxisWalk {
  int rank = 0;
  FastDivisor sizes[kMaxRank] = {};
  std::uint32_t strides[kMaxRank] = {};

  // Appends an axis. Call it from the innermost axis outwards.
  void Append(std::int64_t size, std::int64_t stride) {
    sizes[rank] = FastDivisor(size);
    strides[rank] = static_cast<std::uint32_t>(stride);
    ++rank;
  }
};

// Returns the offset of the element at `index`, in 32 bits. The loop is unrolled so that known properties of
// an axis become operands of instructions.
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
