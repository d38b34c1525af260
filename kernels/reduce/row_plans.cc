#include "kernels/reduce/row_plans.h"

#include <algorithm>
#include <bit>

#include "kernels/ceil_div.h"
#include "kernels/reduce/integer_moments.h"
#include "kernels/reduce/plan_parts.h"
#include "kernels/reduce/vector_costs.h"

namespace warpline {
namespace {

// Chooses how many threads share a result. `rounds`: the vectors of a row, or pieces of runs, that they have;
// a thread has `at_once` of them in flight. A group of threads is not divided.
void PlanLanes(const ReduceProblem& problem, const CanonicalReduce& reduce, std::int64_t rounds, int at_once,
               int least_lanes, int multiprocessors, VectorPlan* plan) {
  // Moments of f64, of wide integers and for f64 results are combined by divisions.
  const bool is_integer = !IsFloat(problem.dtype);
  const bool has_costly_ends =
      (problem.op == ReduceOp::kVar || problem.op == ReduceOp::kStd) &&
      (is_integer ? !IntegerMomentsMonoid<std::int32_t>::Suits(problem)
                  : NumberClassOf(problem.dtype) != NumberClass::kF32 || problem.OutDType() == DType::kF64);
  const std::int64_t bytes = reduce.reduced_count * ElementBytes(problem);
  const int ctas = HasNumber(problem.op) ? kRowCtas : kRowCtas - 1;
  const auto plan_for = [&](int lanes) {
    VectorPlan with = *plan;
    with.lanes = lanes;
    with.results_per_cta = kVectorThreads / lanes;
    with.tiles = CeilDiv(reduce.results, with.results_per_cta);
    SplitTiles(bytes * with.results_per_cta, ctas, multiprocessors, &with);
    return with;
  };
  // A warp is fast enough for rows of some thousand vectors. With few rows, whole CTAs fill the device
  // better. If combining threads takes long, each should have many elements.
  const std::int64_t row_of_cta = has_costly_ends ? 524288 : 65536;
  const bool few = reduce.results < 8 * std::int64_t{multiprocessors};
  if (bytes >= row_of_cta || (few && bytes >= 8192)) {
    *plan = plan_for(kVectorThreads);
  } else {
    int lanes = std::max(least_lanes, CeilPow2(CeilDiv(rounds, kRowLoads), kWarpLanes));
    // Use more threads while multiprocessors have room and each thread can keep loads in flight.
    const std::int64_t room = std::int64_t{kRowCtas} * kVectorThreads * multiprocessors;
    while (!has_costly_ends && 2 * lanes <= kVectorThreads && 2 * lanes * reduce.results <= room &&
           rounds >= 2 * lanes * kRowLoads) {
      lanes *= 2;
    }
    *plan = plan_for(lanes);
  }
  // Keep the plan if its CTAs form nearly whole waves.
  constexpr double kUneven = 1.03;
  if (has_costly_ends || CostOf(*plan, problem, reduce, ctas, multiprocessors) < kUneven) return;
  const auto cost_of = [&](const VectorPlan& p) {
    const double of_thread = static_cast<double>(rounds) / (static_cast<double>(p.lanes) * p.split);
    return CostOf(p, problem, reduce, ctas, multiprocessors) * FillCost(at_once, of_thread);
  };
  *plan =
      Cheapest(*plan, std::max(least_lanes, kWarpLanes), kVectorThreads, reduce.results, plan_for, cost_of);
}

}  // namespace

bool IsPacked(const CanonicalReduce& reduce, std::int64_t row_bytes, bool aligned_base) {
  constexpr std::int64_t kLongRowBytes = 4096;
  return aligned_base && row_bytes > 0 && reduce.reduced.rank == 1 && reduce.kept.rank == 1 &&
         reduce.kept.strides[0] == reduce.reduced_count && row_bytes < kLongRowBytes;
}

void PlanPackedRows(const CanonicalReduce& reduce, std::int64_t row_bytes, int multiprocessors,
                    VectorPlan* plan) {
  plan->shape = ReduceShape::kPackedRows;
  plan->aligned = row_bytes % 16 == 0;
  // Takes as many rows as threads can process in the same number of rounds, at least one per warp. All
  // multiprocessors should have CTAs.
  constexpr std::int64_t kLeast = kVectorThreads / kWarpLanes;
  const std::int64_t share = CeilDiv(reduce.results, 2 * std::int64_t{multiprocessors});
  const std::int64_t rows = std::max(kLeast, std::min(kPackedBytes / row_bytes, share));
  plan->results_per_cta = rows >= kVectorThreads
                              ? rows / kVectorThreads * kVectorThreads
                              : static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(rows)));
  plan->lanes = CeilPow2(kVectorThreads / plan->results_per_cta, kWarpLanes);
  plan->tiles = CeilDiv(reduce.results, plan->results_per_cta);
}

void PlanRows(const ReduceProblem& problem, const CanonicalReduce& reduce, bool aligned_base,
              int multiprocessors, VectorPlan* plan) {
  const std::int64_t vector = 16 / ElementBytes(problem);
  const std::int64_t run = reduce.reduced.dims[reduce.reduced.rank - 1];
  plan->aligned = aligned_base && run % vector == 0 && AreMultiples(reduce.kept, reduce.kept.rank, vector) &&
                  AreMultiples(reduce.reduced, reduce.reduced.rank - 1, vector);
  // A row of one run has single elements only before its first vector and after its last.
  if (plan->aligned || reduce.reduced.rank == 1) {
    plan->steps = reduce.reduced_count / vector;
    return PlanLanes(problem, reduce, plan->steps, kRowLoads, 1, multiprocessors, plan);
  }
  plan->shape = ReduceShape::kRuns;
  // The maximum number of vectors that a run touches. Uses the largest group of threads in which at most a
  // quarter of the loads have no vector, or the group with the fewest such loads.
  const std::int64_t touched = run > 0 ? CeilDiv(run + vector - 1, vector) : 1;
  const auto loads_of = [touched](int group) {
    const std::int64_t at_once = std::int64_t{group} * kRowLoads;
    return CeilDiv(touched, at_once) * at_once;
  };
  for (int group = plan->group = kWarpLanes; group > 0; group /= 2) {
    if (loads_of(group) < loads_of(plan->group)) plan->group = group;
    if (3 * loads_of(plan->group) <= 4 * touched) break;
  }
  plan->pieces = loads_of(plan->group) / (std::int64_t{plan->group} * kRowLoads);
  plan->steps = run > 0 ? reduce.reduced_count / run * plan->pieces : 0;
  if (reduce.results > 0 && plan->steps > 0) {
    plan->extent =
        reduce.kept.Offset(reduce.results - 1) + reduce.reduced.Offset(reduce.reduced_count - 1) + 1;
  }
  PlanLanes(problem, reduce, plan->steps * plan->group, 1, plan->group, multiprocessors, plan);
}

}  // namespace warpline
