#include "server/plan/plan_cache.h"

namespace warpline {
namespace {

// What a plan keeps in memory, estimated from the parts whose number a request decides. The key is there
// twice in a sense: most of it comes back in the steps' problems.
std::size_t EstimateBytes(const std::string& key, const Plan& plan) {
  return sizeof(Plan) + 2 * key.size() + plan.signature.size() +
         plan.program.steps.size() * (sizeof(Step) + sizeof(std::size_t) + 64) +
         plan.program.tensors.size() * (sizeof(TensorSpec) + sizeof(Placement)) +
         plan.outputs.size() * (sizeof(PlannedOutput) + 64);
}

}  // namespace

PlanPtr PlanCache::Find(std::string_view key) {
  MutexLock lock(&mutex_);
  const auto found = index_.find(absl::string_view(key.data(), key.size()));
  if (found == index_.end()) {
    metrics_.plan_cache.misses.Add();
    return nullptr;
  }
  metrics_.plan_cache.hits.Add();
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->plan;
}

void PlanCache::Insert(std::string key, PlanPtr plan) {
  const std::size_t bytes = EstimateBytes(key, *plan);
  if (bytes > max_bytes_ / 16) return;
  MutexLock lock(&mutex_);
  if (index_.contains(absl::string_view(key))) return;  // two requests of one kind came at once
  while (bytes_ + bytes > max_bytes_) {
    bytes_ -= entries_.back().bytes;
    index_.erase(entries_.back().key);
    entries_.pop_back();
    metrics_.plan_cache.evictions.Add();
  }
  entries_.push_front({std::move(key), std::move(plan), bytes});
  index_[entries_.front().key] = entries_.begin();
  bytes_ += bytes;
  metrics_.plan_cache.entries.Set(static_cast<double>(entries_.size()));
}

}  // namespace warpline
