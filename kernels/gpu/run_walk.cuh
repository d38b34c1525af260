// Loads the elements of an operand in the order of a dense result. Along the innermost axis the operand is
// contiguous, or has one element for all. The elements for one vector of the result may be unaligned, and may
// continue in the next row.
#ifndef WARPLINE_KERNELS_GPU_RUN_WALK_CUH_
#define WARPLINE_KERNELS_GPU_RUN_WALK_CUH_

#include <cstdint>

#include "kernels/axis_walk.h"
#include "kernels/fast_divisor.h"
#include "kernels/gpu/raw_vector.cuh"
#include "kernels/shape.h"

namespace warpline {

// The position of an element: its offset, its index along the innermost axis, and the offset of the next row.
struct RunPlace {
  std::uint32_t offset = 0, in_row = 0, next_row = 0;
};

// The loop is unrolled so that known properties of an axis become operands of instructions.
__device__ inline RunPlace PlaceOf(const AxisWalk& walk, std::uint32_t index) {
  RunPlace place;
  place.in_row = walk.rank == 1 ? index : TakeRemainder(index, walk.sizes[0]);
  bool carries = true;  // the next row is one further along this axis, or wraps around
#pragma unroll
  for (int i = 1; i < kMaxRank; ++i) {
    if (i >= walk.rank) break;
    const std::uint32_t coordinate = i + 1 == walk.rank ? index : TakeRemainder(index, walk.sizes[i]);
    place.offset += coordinate * walk.strides[i];
    std::uint32_t next = coordinate + carries;
    carries = next == walk.sizes[i].divisor;
    if (carries) next = 0;
    place.next_row += next * walk.strides[i];
  }
  place.offset += place.in_row * walk.strides[0];
  return place;
}

// Loads kSize elements from `index` on, of which `count` exist. Rows must have at least kSize elements. The
// innermost stride must be 1 or 0.
template <typename T, int kSize>
__device__ RawVector<kSize* static_cast<int>(sizeof(T))> LoadRuns(const T* data, const AxisWalk& walk,
                                                                  std::uint32_t index, std::uint32_t count) {
  const RunPlace place = PlaceOf(walk, index);
  const std::uint32_t left = walk.sizes[0].divisor - place.in_row;
  const T* here = data + place.offset;
  const T* next = left < kSize && left < count ? data + place.next_row : here;
  RawVector<kSize* static_cast<int>(sizeof(T))> vector = {};
  if (walk.strides[0] == 0) {
    const T before = *here, after = *next;
#pragma unroll
    for (int i = 0; i < kSize; ++i) SetElement(vector, i, i < left ? before : after);
    return vector;
  }
  next -= left;
#pragma unroll
  for (int i = 0; i < kSize; ++i) {
    if (i < count) SetElement(vector, i, (i < left ? here : next)[i]);
  }
  return vector;
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_GPU_RUN_WALK_CUH_
