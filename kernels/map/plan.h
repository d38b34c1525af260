// How a map is run on a GPU, independent of the addresses of its operands.
#ifndef WARPLINE_KERNELS_MAP_PLAN_H_
#define WARPLINE_KERNELS_MAP_PLAN_H_

#include "kernels/map/code.h"
#include "kernels/map/walk.h"
#include "kernels/problem.h"

namespace warpline {

struct MapPlan {
  MapCode code;
  MapWalk walk;
};

inline MapPlan PlanMap(const MapProblem& problem) { return {Lower(problem), MapWalk::Of(problem)}; }

}  // namespace warpline

#endif  // WARPLINE_KERNELS_MAP_PLAN_H_
