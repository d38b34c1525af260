// Walks over the axes of two arrays at once by strides. The CPU's transpose and reduce share it.
#ifndef WARPLINE_KERNELS_CPU_STRIDED_H_
#define WARPLINE_KERNELS_CPU_STRIDED_H_

#include <cstdint>

#include "kernels/shape.h"

namespace warpline::cpu {

// An axis of `size` indices, with its strides in x and in y in elements.
struct Axis {
  std::int64_t size = 1;
  std::int64_t x_stride = 0;
  std::int64_t y_stride = 0;
};

// Axes from the slowest to the fastest; at most kMaxRank. It has value semantics.
class AxisList {
 public:
  // Adds a fastest axis. Skips axes of size 1, and merges an axis with its neighbour if it continues that in
  // both arrays. So the loops are as few and as long as possible.
  void Append(const Axis& axis) {
    if (axis.size == 1) return;
    if (count_ > 0) {
      Axis& last = axes_[count_ - 1];
      if (last.x_stride == axis.size * axis.x_stride && last.y_stride == axis.size * axis.y_stride) {
        last = {last.size * axis.size, axis.x_stride, axis.y_stride};
        return;
      }
    }
    axes_[count_++] = axis;
  }

  // Removes and returns the axis along which x is contiguous; if there is none, returns an axis of size 1. An
  // empty axis is kept, so that ForEach returns at once: there may be too many empty runs to visit.
  Axis RemoveContiguousInX() {
    for (int i = 0; i < count_; ++i) {
      if (axes_[i].x_stride == 1 && axes_[i].size > 0) return Remove(i);
    }
    return Axis{};
  }

  // Same for the fastest axis.
  Axis RemoveLast() { return count_ > 0 && axes_[count_ - 1].size > 0 ? Remove(count_ - 1) : Axis{}; }

  // Calls f(x_offset, y_offset) for every index, the last axis fastest; once if there is no axis; never if
  // one is empty. Ends early, and returns false, when f returns false.
  template <typename F>
  bool ForEach(F&& f) const {
    for (int i = 0; i < count_; ++i) {
      if (axes_[i].size == 0) return true;
    }
    PerAxis<std::int64_t> index{};
    std::int64_t x = 0;
    std::int64_t y = 0;
    while (true) {
      if (!f(x, y)) return false;
      int i = count_ - 1;
      for (; i >= 0; --i) {
        x += axes_[i].x_stride;
        y += axes_[i].y_stride;
        if (++index[i] < axes_[i].size) break;
        x -= axes_[i].size * axes_[i].x_stride;
        y -= axes_[i].size * axes_[i].y_stride;
        index[i] = 0;
      }
      if (i < 0) return true;
    }
  }

 private:
  Axis Remove(int i) {
    const Axis removed = axes_[i];
    for (--count_; i < count_; ++i) axes_[i] = axes_[i + 1];
    return removed;
  }

  int count_ = 0;
  PerAxis<Axis> axes_{};
};

}  // namespace warpline::cpu

#endif  // WARPLINE_KERNELS_CPU_STRIDED_H_
