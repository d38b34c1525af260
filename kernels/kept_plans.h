// A cache of choices: the plans of kernels, or the algorithms of a library.
#ifndef WARPLINE_KERNELS_KEPT_PLANS_H_
#define WARPLINE_KERNELS_KEPT_PLANS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <unordered_map>
#include <utility>

namespace warpline {

// A key that consists of numbers, and its hash.
template <std::size_t kSize>
using PlanNumbers = std::array<std::int64_t, kSize>;
struct PlanNumbersHash {
  template <std::size_t kSize>
  std::size_t operator()(const PlanNumbers<kSize>& key) const {
    std::uint64_t hash = 0;
    for (const std::int64_t number : key) {
      // The increment of SplitMix64 (Steele, Lea and Flood, 2014). It is odd, and its set bits are well
      // spread.
      hash = (hash ^ static_cast<std::uint64_t>(number)) * 0x9e3779b97f4a7c15;
      hash ^= hash >> 32;
    }
    return hash;
  }
};

// Plans with keys that contain everything they depend on. Thread-safe.
template <typename KeyT, typename Plan, typename Hash>
class KeptPlans {
 public:
  using Key = KeyT;

  explicit KeptPlans(std::size_t max_plans) : max_plans_(max_plans) {}
  KeptPlans(const KeptPlans&) = delete;
  KeptPlans& operator=(const KeptPlans&) = delete;

  // Returns the plan for this key. If there is none, calls `make`, without holding a lock. It returns an
  // optional plan. A plan is kept. If `make` returns nothing, Get returns null, and `make` is called again
  // next time. If there are too many plans, all are dropped first. Those in use are soon made again. So a
  // client that sends new problems all the time costs other clients only an occasional plan.
  template <typename Make>
  std::shared_ptr<const Plan> Get(const Key& key, const Make& make) {
    {
      const std::shared_lock lock(mutex_);
      const auto found = plans_.find(key);
      if (found != plans_.end()) return found->second;
    }
    std::optional<Plan> made = make();
    if (!made.has_value()) return nullptr;
    auto plan = std::make_shared<const Plan>(*std::move(made));
    const std::unique_lock lock(mutex_);
    ++made_;
    if (plans_.size() >= max_plans_) plans_.clear();
    return plans_.try_emplace(key, std::move(plan)).first->second;
  }

  // Returns the number of plans made since the start.
  std::int64_t made() const {
    const std::shared_lock lock(mutex_);
    return made_;
  }
  std::size_t size() const {
    const std::shared_lock lock(mutex_);
    return plans_.size();
  }

 private:
  const std::size_t max_plans_;
  mutable std::shared_mutex mutex_;  // guards the members below
  std::unordered_map<Key, std::shared_ptr<const Plan>, Hash> plans_;
  std::int64_t made_ = 0;
};

}  // namespace warpline

#endif  // WARPLINE_KERNELS_KEPT_PLANS_H_
