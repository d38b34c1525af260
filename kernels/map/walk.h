// The elements of a map in row-major order, with as few axes as possible.
#ifndef WARPLINE_KERNELS_MAP_WALK_H_
#define WARPLINE_KERNELS_MAP_WALK_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/problem.h"

namespace warpline {

// Returns the axes whose positions a map uses, in the order in which its nodes first name them.
inline std::vector<int> IndexAxes(const MapProblem& problem) {
  std::vector<int> axes;
  for (const MapNode& node : problem.nodes) {
    if (node.op != MapOp::kIndex) continue;
    if (std::find(axes.begin(), axes.end(), node.operands[0]) == axes.end()) axes.push_back(node.operands[0]);
  }
  return axes;
}

// Removes axes of size 1, and merges an axis with its neighbour if it continues that in every row of strides.
// A map of one element has no axes.
struct MapWalk {
  int rank = 0;
  std::int64_t count = 1;
  std::int64_t dims[kMaxRank] = {};
  // The strides along these axes: first of each input; then of the position along each of IndexAxes, as if it
  // were an input; last of the result.
  std::vector<Strides> strides;

  const Strides& of_result() const { return strides.back(); }

  static MapWalk Of(const MapProblem& problem) {
    std::vector<Strides> all;
    for (const MapInput& input : problem.inputs) all.push_back(input.strides);
    for (const int axis : IndexAxes(problem)) all.emplace_back()[axis] = 1;
    all.push_back(problem.OutStrides());
    MapWalk walk;
    walk.strides.resize(all.size());
    for (int axis = 0; axis < problem.shape.rank; ++axis) {
      const std::int64_t size = problem.shape[axis];
      walk.count *= size;
      if (size == 1) continue;
      bool continues = walk.rank > 0;
      for (std::size_t i = 0; i < all.size() && continues; ++i) {
        continues = walk.strides[i][walk.rank - 1] == size * all[i][axis];
      }
      if (continues) {
        walk.dims[walk.rank - 1] *= size;
      } else {
        walk.dims[walk.rank++] = size;
      }
      for (std::size_t i = 0; i < all.size(); ++i) walk.strides[i][walk.rank - 1] = all[i][axis];
    }
    return walk;
  }
};

}  // namespace warpline

#endif  // WARPLINE_KERNELS_MAP_WALK_H_
