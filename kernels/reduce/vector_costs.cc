#include "kernels/reduce/vector_costs.h"

#include <cmath>

#include "kernels/ceil_div.h"

namespace warpline {
namespace {

// Minimum bytes of a CTA that repay writing and reading its partial results. The minimum is smaller if
// multiprocessors would be idle without the split. It is larger if the split only balances their work.
constexpr std::int64_t kMinIdleSplitBytes = 64 << 10, kMinSplitBytes = 384 << 10,
                       kMinBusySplitBytes = 768 << 10;  // bytes
// The bytes that a multiprocessor reads while the second launch begins (two microseconds).
constexpr double kBytesOfLaunch = 68 << 10;

}  // namespace

double WaveCost(std::int64_t ctas, std::int64_t slots) {
  const double waves = static_cast<double>(ctas) / static_cast<double>(slots);
  if (waves <= 0) return 1;
  const double full = std::floor(waves), rest = waves - full;
  if (full == 0) return 0.88 + 0.12 / waves;
  return (full + (rest > 0 ? 0.3 + 0.7 * rest : 0)) / waves;
}

void SplitTiles(std::int64_t bytes, int ctas, int multiprocessors, VectorPlan* plan) {
  std::int64_t split = 1;
  if (plan->tiles > 0) {
    const std::int64_t least = plan->tiles < multiprocessors       ? kMinIdleSplitBytes
                               : plan->tiles < 2 * multiprocessors ? kMinSplitBytes
                                                                   : kMinBusySplitBytes;
    const std::int64_t slots = std::int64_t{ctas} * multiprocessors;
    split = std::clamp<std::int64_t>(slots / plan->tiles, 1, std::max<std::int64_t>(1, bytes / least));
    const double gained = WaveCost(plan->tiles, slots) - WaveCost(plan->tiles * split, slots);
    const double all = static_cast<double>(bytes) * static_cast<double>(plan->tiles);
    // With few tiles, processing one tile takes longer than that.
    if (2 * plan->tiles >= multiprocessors && gained * all < kBytesOfLaunch * multiprocessors) split = 1;
  }
  plan->chunk = std::max<std::int64_t>(1, CeilDiv(plan->steps, split));
  plan->split = static_cast<int>(std::max<std::int64_t>(1, CeilDiv(plan->steps, plan->chunk)));
}

double CostOf(const VectorPlan& plan, const ReduceProblem& problem, const CanonicalReduce& reduce, int ctas,
              int multiprocessors) {
  const auto bytes = static_cast<std::int64_t>(SizeOf(problem.dtype));
  const std::int64_t slots = std::int64_t{ctas} * multiprocessors, all_ctas = plan.tiles * plan.split;
  double cost = WaveCost(all_ctas, slots);
  // With narrow elements, or if elements of several axes must be located, threads are as busy as the memory.
  // So having fewer threads costs time.
  const bool busy = bytes < 4 || (reduce.InnermostReduced() && reduce.reduced.rank > 1);
  if (busy && all_ctas > 0 && all_ctas < slots) {
    cost *= 0.5 + 0.5 * static_cast<double>(slots) / static_cast<double>(all_ctas);
  }
  if (plan.split == 1) return cost;
  const double all = static_cast<double>(reduce.results) * static_cast<double>(reduce.reduced_count) *
                     static_cast<double>(bytes);
  return cost + kBytesOfLaunch * multiprocessors / all;
}

}  // namespace warpline
