// The choice of a kernel for a reduction, as a value. Pure host code.
#ifndef WARPLINE_KERNELS_REDUCE_PLAN_H_
#define WARPLINE_KERNELS_REDUCE_PLAN_H_

#include <cstddef>
#include <optional>

#include "kernels/reduce/vector_plan.h"

namespace warpline {

struct ReducePlan {
  CanonicalReduce reduce;
  VectorPlan vectors;  // its shape selects the kernel; not used if there are no results

  std::size_t WorkspaceBytes() const { return vectors.WorkspaceBytes(reduce.results); }
};

// Only the input's address modulo 16 matters.
ReducePlan PlanReduce(const ReduceProblem& problem, const DeviceTraits& traits, const void* in);
// Plans for this kernel, whether fast or not. Returns nothing if it does not support the problem at this
// address.
std::optional<ReducePlan> PlanReduceBy(ReduceShape shape, const ReduceProblem& problem,
                                       const DeviceTraits& traits, const void* in);

}  // namespace warpline

#endif  // WARPLINE_KERNELS_REDUCE_PLAN_H_
