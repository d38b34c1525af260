#include "server/plan/plan_cache.h"

#include <iterator>
#include <variant>

namespace warpline {
namespace {

// Estimated bytes of the cache's own data for an entry, including its owner's if this is the owner's only
// entry.
constexpr std::size_t kBookkeepingBytes = 256;

// Estimates the memory that a plan uses, from the parts whose number depends on the request. The key counts
// twice, because most of it appears again in the problems of the steps.
std::size_t EstimateBytes(const std::string& key, const Plan& plan) {
  std::size_t maps = 0;  // what map problems have in addition
  for (const Step& step : plan.program.steps) {
    const auto* map = std::get_if<MapProblem>(&step.problem);
    if (map == nullptr) continue;
    maps += map->inputs.size() * (sizeof(MapInput) + sizeof(int) + sizeof(std::size_t)) +
            map->nodes.size() * sizeof(MapNode) + map->further.size() * (sizeof(std::int16_t) + sizeof(int));
  }
  return maps + kBookkeepingBytes + sizeof(Plan) + 2 * key.size() +
         (plan.compiled != nullptr ? plan.compiled->bytes() : 0) +
         plan.program.steps.size() * (sizeof(Step) + sizeof(std::size_t) + 64) +
         plan.program.tensors.size() * (sizeof(TensorSpec) + sizeof(Placement)) +
         plan.scalars.size() * sizeof(PlannedScalars) + plan.outputs.size() * (sizeof(PlannedOutput) + 128) +
         plan.inputs.size() * (sizeof(PlannedInput) + 64);
}

}  // namespace

PlanPtr PlanCache::Find(std::string_view key, MonotonicTime now) {
  MutexLock lock(&mutex_);
  const auto found = index_.find(absl::string_view(key.data(), key.size()));
  if (found == index_.end()) {
    metrics_.plan_cache.misses.Add();
    return nullptr;
  }
  metrics_.plan_cache.hits.Add();
  Entry& entry = *found->second;
  entry.used = now;
  entries_.splice(entries_.begin(), entries_, found->second);
  EntriesOfOwner& of_owner = entry.owner->entries;
  of_owner.splice(of_owner.begin(), of_owner, entry.place);
  return entry.plan;
}

void PlanCache::Insert(std::string key, PlanPtr plan, OwnerId id, MonotonicTime now) {
  const std::size_t bytes = EstimateBytes(key, *plan);
  if (bytes > max_bytes_ / 16) return;
  MutexLock lock(&mutex_);
  if (index_.contains(absl::string_view(key))) return;  // two identical requests arrived at the same time
  Owner& owner = owners_[id];
  owner.id = id;
  entries_.push_front({.key = std::move(key), .plan = std::move(plan), .bytes = bytes, .used = now});
  Entry& entry = entries_.front();
  entry.owner = &owner;
  owner.entries.push_front(entries_.begin());
  entry.place = owner.entries.begin();
  index_[entry.key] = entries_.begin();
  SetBytes(owner, owner.bytes + bytes);
  bytes_ += bytes;
  while (bytes_ > max_bytes_) {
    Evict(Victim(now));
    metrics_.plan_cache.evictions.Add();
  }
  metrics_.plan_cache.entries.Set(static_cast<double>(entries_.size()));
}

PlanCache::Entries::iterator PlanCache::Victim(MonotonicTime now) {
  const Entries::iterator oldest = std::prev(entries_.end());
  if (now - oldest->used > kIdle) return oldest;
  const Entries::iterator of_largest = by_bytes_.rbegin()->second->entries.back();
  return of_largest == entries_.begin() ? oldest : of_largest;
}

void PlanCache::Evict(Entries::iterator entry) {
  Owner& owner = *entry->owner;
  owner.entries.erase(entry->place);
  SetBytes(owner, owner.bytes - entry->bytes);
  bytes_ -= entry->bytes;
  index_.erase(entry->key);
  entries_.erase(entry);
  if (owner.entries.empty()) owners_.erase(owner.id);
}

void PlanCache::SetBytes(Owner& owner, std::size_t bytes) {
  by_bytes_.erase({owner.bytes, &owner});
  owner.bytes = bytes;
  if (bytes > 0) by_bytes_.insert({bytes, &owner});
}

std::size_t PlanCache::BytesOf(OwnerId owner) const {
  MutexLock lock(&mutex_);
  const auto found = owners_.find(owner);
  return found == owners_.end() ? 0 : found->second.bytes;
}

std::size_t PlanCache::owners() const {
  MutexLock lock(&mutex_);
  return owners_.size();
}

}  // namespace warpline
