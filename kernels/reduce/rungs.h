// The rungs of reductions share these rules: whether they support a problem, and their workspace.
#ifndef WARPLINE_KERNELS_REDUCE_RUNGS_H_
#define WARPLINE_KERNELS_REDUCE_RUNGS_H_

#include <cstddef>

#include "kernels/launch_grids.h"
#include "kernels/problem.h"
#include "kernels/reduce/canonical.h"
#include "kernels/reduce/rung_plan.h"
#include "kernels/variant.h"

namespace warpline {

inline RungPlan RungPlanOf(const ReduceProblem& problem, const DeviceTraits& traits) {
  return PlanRung(Canonicalize(problem), VectorOf(problem), traits);
}

// For the dtypes of HasRungs.
inline bool SupportsRungs(const ReduceProblem& problem, const DeviceTraits& traits) {
  const RungPlan plan = RungPlanOf(problem, traits);
  return HasTypedKernel(problem) && plan.tiles * plan.split <= kMaxGridX;
}

// The bytes of the partial results.
inline std::size_t PartialBytes(const ReduceProblem& problem, const DeviceTraits& traits) {
  return RungPlanOf(problem, traits).WorkspaceBytes(Canonicalize(problem).results);
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_REDUCE_RUNGS_H_
