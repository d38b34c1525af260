// The plans of one device: each is made once for a problem and an alignment of its operands.
#ifndef WARPLINE_KERNELS_TRANSPOSE_PLANS_H_
#define WARPLINE_KERNELS_TRANSPOSE_PLANS_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/kept_plans.h"
#include "kernels/problem.h"
#include "kernels/transpose/plan.h"
#include "kernels/variant.h"

namespace warpline {

// Thread-safe.
class TransposePlans {
 public:
  // A plan takes about 2 KiB.
  explicit TransposePlans(std::size_t max_plans = 1024) : plans_(max_plans) {}

  // Returns what PlanTranspose returns.
  std::shared_ptr<const TransposePlan> Get(const TransposeProblem& problem, const DeviceTraits& traits,
                                           const void* in, const void* out);
  // Returns how many plans were made since the start.
  std::int64_t made() const { return plans_.made(); }
  std::size_t size() const { return plans_.size(); }

 private:
  // The sizes of axes; their order; the distance of rows; all else. The multiprocessors are part of it
  // because a partition takes some away after the first plans were made.
  KeptPlans<kMaxRank + 3, TransposePlan> plans_;
};

}  // namespace warpline

#endif  // WARPLINE_KERNELS_TRANSPOSE_PLANS_H_
