// The plans of one device: each is made once for a problem and an alignment of its operands.
#ifndef WARPLINE_KERNELS_TRANSPOSE_PLANS_H_
#define WARPLINE_KERNELS_TRANSPOSE_PLANS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <shared_mutex>
#include <unordered_map>

#include "kernels/problem.h"
#include "kernels/transpose/plan.h"
#include "kernels/variant.h"

namespace warpline {

// Thread-safe.
class TransposePlans {
 public:
  // A plan takes about 2 KiB.
  explicit TransposePlans(std::size_t max_plans = 1024) : max_plans_(max_plans) {}
  TransposePlans(const TransposePlans&) = delete;
  TransposePlans& operator=(const TransposePlans&) = delete;

  // Returns what PlanTranspose returns. If there are too many plans, all are dropped first: what is in use is
  // soon there again, and a client that sends new shapes without end costs others a plan now and then.
  std::shared_ptr<const TransposePlan> Get(const TransposeProblem& problem, const DeviceTraits& traits,
                                           const void* in, const void* out);
  // Returns how many plans were made since the start.
  std::int64_t made() const;
  std::size_t size() const;

 private:
  // Everything that a plan depends on. Lanes of one device may have different numbers of multiprocessors.
  struct Key {
    std::array<std::int64_t, kMaxRank> dims{};
    std::array<std::int8_t, kMaxRank> perm{};
    std::int64_t row_stride = 0;
    std::int32_t rank = 0, multiprocessors = 0;
    std::uint8_t dtype = 0, in = 0, out = 0;  // remainders of addresses by 16
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };

  const std::size_t max_plans_;
  mutable std::shared_mutex mutex_;  // guards all below
  std::unordered_map<Key, std::shared_ptr<const TransposePlan>, Hash> plans_;
  std::int64_t made_ = 0;
};

}  // namespace warpline

#endif  // WARPLINE_KERNELS_TRANSPOSE_PLANS_H_
