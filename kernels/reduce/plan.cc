#include "kernels/reduce/plan.h"

namespace warpline {
namespace {

bool IsAligned(const void* address) { return reinterpret_cast<std::uintptr_t>(address) % 16 == 0; }

}  // namespace

ReducePlan PlanReduce(const ReduceProblem& problem, const DeviceTraits& traits, const void* in) {
  ReducePlan plan{.reduce = Canonicalize(problem), .vectors = {}};
  plan.vectors = PlanVectors(problem, plan.reduce, IsAligned(in), traits);
  return plan;
}

std::optional<ReducePlan> PlanReduceBy(ReduceShape shape, const ReduceProblem& problem,
                                       const DeviceTraits& traits, const void* in) {
  ReducePlan plan{.reduce = Canonicalize(problem), .vectors = {}};
  const std::optional<VectorPlan> vectors = PlanVectorsBy(shape, problem, plan.reduce, IsAligned(in), traits);
  if (!vectors.has_value()) return std::nullopt;
  plan.vectors = *vectors;
  return plan;
}

}  // namespace warpline
