// The elements of a map of one operation in the order of its dense result, with as few axes as possible.
#ifndef WARPLINE_KERNELS_MAP_PACKS_WALK_H_
#define WARPLINE_KERNELS_MAP_PACKS_WALK_H_

#include <cstdint>

#include "kernels/host_device.h"
#include "kernels/map/pair.h"
#include "kernels/take_remainder.h"

namespace warpline {

// The offsets in x and y, in elements, from which a result element is computed.
struct PairSource {
  std::int64_t x = 0, y = 0;
};

struct PairWalk {
  int rank = 0;
  std::int64_t count = 1;
  std::int64_t dims[kMaxRank] = {};  // C arrays, because device code cannot index a std::array
  std::int64_t x[kMaxRank] = {}, y[kMaxRank] = {};

  // Removes axes of size 1, and merges an axis with its neighbour if it continues that in both operands.
  static PairWalk Of(const PairMap& problem) {
    PairWalk walk;
    for (int i = 0; i < problem.shape.rank; ++i) {
      const std::int64_t size = problem.shape[i];
      walk.count *= size;
      if (size == 1) continue;
      const std::int64_t x = problem.x_strides[i], y = problem.y_strides[i];
      const int last = walk.rank - 1;
      if (walk.rank > 0 && walk.x[last] == size * x && walk.y[last] == size * y) {
        walk.dims[last] *= size;
        walk.x[last] = x;
        walk.y[last] = y;
      } else {
        walk.dims[walk.rank] = size;
        walk.x[walk.rank] = x;
        walk.y[walk.rank++] = y;
      }
    }
    return walk;
  }

  // Requires 0 <= index < count.
  WARPLINE_HOST_DEVICE PairSource At(std::int64_t index) const {
    PairSource source;
    for (int axis = rank - 1; axis > 0; --axis) {
      const std::int64_t coordinate = TakeRemainder(index, dims[axis]);
      source.x += coordinate * x[axis];
      source.y += coordinate * y[axis];
    }
    if (rank > 0) {
      source.x += index * x[0];
      source.y += index * y[0];
    }
    return source;
  }
};

}  // namespace warpline

#endif  // WARPLINE_KERNELS_MAP_PACKS_WALK_H_
