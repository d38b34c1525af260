// The elements of a map in the order of its dense result, with as few axes as possible.
#ifndef WARPLINE_KERNELS_MAP_WALK_H_
#define WARPLINE_KERNELS_MAP_WALK_H_

#include <cstdint>
#include <vector>

#include "kernels/problem.h"

namespace warpline {

// Axes of size 1 vanish, and an axis that continues its neighbour in every input is fused with it. The axes
// of a map of one element are none.
struct MapWalk {
  int rank = 0;
  std::int64_t count = 1;
  std::int64_t dims[kMaxRank] = {};
  std::vector<Strides> strides;  // of each input, along these axes

  static MapWalk Of(const MapProblem& problem) {
    MapWalk walk;
    walk.strides.resize(problem.inputs.size());
    for (int axis = 0; axis < problem.shape.rank; ++axis) {
      const std::int64_t size = problem.shape[axis];
      walk.count *= size;
      if (size == 1) continue;
      bool continues = walk.rank > 0;
      for (std::size_t i = 0; i < problem.inputs.size() && continues; ++i) {
        continues = walk.strides[i][walk.rank - 1] == size * problem.inputs[i].strides[axis];
      }
      if (continues) {
        walk.dims[walk.rank - 1] *= size;
      } else {
        walk.dims[walk.rank++] = size;
      }
      for (std::size_t i = 0; i < problem.inputs.size(); ++i) {
        walk.strides[i][walk.rank - 1] = problem.inputs[i].strides[axis];
      }
    }
    return walk;
  }
};

}  // namespace warpline

#endif  // WARPLINE_KERNELS_MAP_WALK_H_
