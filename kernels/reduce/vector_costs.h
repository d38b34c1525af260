// Relative costs of VectorPlans, and the number of CTAs that share a result.
#ifndef WARPLINE_KERNELS_REDUCE_VECTOR_COSTS_H_
#define WARPLINE_KERNELS_REDUCE_VECTOR_COSTS_H_

#include <algorithm>
#include <cstdint>

#include "kernels/reduce/vector_plan.h"

namespace warpline {

// Returns how much longer `ctas` CTAs take than if their work were balanced perfectly, if the device holds
// `slots` of them at the same time. The last CTAs of an incomplete wave have the memory for themselves, but
// are not much faster for it. CTAs for half of the slots keep the memory nearly as busy as CTAs for all.
// Fitted to times of an H200 with 0.5 to 8 waves of the same reductions
// (docs/benchmarks/2026-11-25-h200-waves.md).
double WaveCost(std::int64_t ctas, std::int64_t slots);

// Pipeline fill and drain cost of a thread that keeps `loads` loads in flight. The thread has `rows` elements
// of a result, or `rows` vectors of a row. Until the first loads arrive the thread is idle, and at the end
// fewer than `loads` are left.
inline double FillCost(double loads, double rows) { return 1 + 0.6 * loads / std::max(1.0, rows); }

// Splits the results of a tile among CTAs while there are too few of them; `bytes` is the size of a tile.
// Uses at most as many CTAs as the device holds at the same time (`ctas` per multiprocessor), because each
// partial result is written and read once more.
void SplitTiles(std::int64_t bytes, int ctas, int multiprocessors, VectorPlan* plan);

// The cost of a plan: WaveCost, plus the second launch as a fraction of the work of all CTAs. If threads are
// as busy as the memory, having fewer of them adds to the cost.
double CostOf(const VectorPlan& plan, const ReduceProblem& problem, const CanonicalReduce& reduce, int ctas,
              int multiprocessors);

// Returns the cheapest of the plans with `least`, 2 * least, ... `most` for `lanes`, but keeps `usual` unless
// it is clearly worse. plan_for(lanes) is such a plan, and cost_of(plan) is its cost. Skips plans that share
// results among CTAs, and plans whose CTAs have room for more than `results`. Nothing is allocated.
template <typename PlanFor, typename CostOfPlan>
VectorPlan Cheapest(const VectorPlan& usual, int least, int most, std::int64_t results, PlanFor&& plan_for,
                    CostOfPlan&& cost_of) {
  constexpr double kClearly = 0.98;
  VectorPlan best = usual;
  double cheapest = kClearly * cost_of(usual);
  for (int lanes = least; lanes <= most; lanes *= 2) {
    const VectorPlan plan = plan_for(lanes);
    const double cost = cost_of(plan);
    if (plan.split > 1 || plan.results_per_cta > results || cost >= cheapest) continue;
    best = plan;
    cheapest = cost;
  }
  return best;
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_REDUCE_VECTOR_COSTS_H_
