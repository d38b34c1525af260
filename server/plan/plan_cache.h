// A cache of plans, so that a known request is not parsed and validated again.
#ifndef WARPLINE_SERVER_PLAN_PLAN_CACHE_H_
#define WARPLINE_SERVER_PLAN_PLAN_CACHE_H_

#include <chrono>
#include <cstddef>
#include <list>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/node_hash_map.h"
#include "absl/strings/string_view.h"
#include "server/base/clock.h"
#include "server/base/mutex.h"
#include "server/base/owner.h"
#include "server/observe/metrics.h"
#include "server/plan/plan.h"

namespace warpline {

// A bounded map that is shared fairly between owners. Counts hits, misses, evictions and entries.
// Thread-safe.
//
// Each plan is charged to the owner who inserted it. A hit by another owner does not move the charge. This
// keeps hits cheap. It also stops an owner from taking over plans of others and then losing them because its
// own share is too large.
// When room is needed, the owner that holds the most bytes loses its least recently used plan. So a stream of
// new requests never evicts another owner's plans within that owner's fair share. The exception is a plan
// that nobody has used for kIdle: it is evicted first, because the cache is not told when a client leaves.
//
// The RPC layer makes keys so that equal keys mean equal plans: see PlanKey in server/rpc/codec/codec.h. Keys
// are compared in full, so a hash collision costs time but never returns a wrong plan.
class PlanCache {
 public:
  static constexpr std::chrono::minutes kIdle{10};

  // `max_bytes` limits the keys and the estimated size of the plans. A plan that alone is larger than a
  // sixteenth of it is not kept.
  PlanCache(std::size_t max_bytes, Metrics& metrics) : max_bytes_(max_bytes), metrics_(metrics) {}
  PlanCache(const PlanCache&) = delete;
  PlanCache& operator=(const PlanCache&) = delete;

  // Returns null if the plan is not known. `now` is roughly the time of the request: reading the clock would
  // cost as much as the lookup.
  PlanPtr Find(std::string_view key, MonotonicTime now);
  void Insert(std::string key, PlanPtr plan, OwnerId owner, MonotonicTime now);

  // Return the bytes that are charged to an owner, and the number of owners that have plans. For tests.
  std::size_t BytesOf(OwnerId owner) const;
  std::size_t owners() const;

 private:
  struct Entry;
  using Entries = std::list<Entry>;
  using EntriesOfOwner = std::list<Entries::iterator>;
  struct Owner {
    OwnerId id = 0;
    std::size_t bytes = 0;
    EntriesOfOwner entries;  // the most recently used first
  };
  struct Entry {
    std::string key;
    PlanPtr plan;
    std::size_t bytes = 0;
    MonotonicTime used;
    Owner* owner = nullptr;
    EntriesOfOwner::iterator place{};  // among the owner's
  };

  void SetBytes(Owner& owner, std::size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Evict(Entries::iterator entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the entry to evict next, but never the one that was just inserted. If the largest owner has only
  // that entry, it returns the least recently used entry of all.
  Entries::iterator Victim(MonotonicTime now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::size_t max_bytes_;
  Metrics& metrics_;
  mutable Mutex mutex_;
  Entries entries_ ABSL_GUARDED_BY(mutex_);  // the most recently used first
  // The keys view the strings in the list's nodes, which never move.
  absl::flat_hash_map<absl::string_view, Entries::iterator> index_ ABSL_GUARDED_BY(mutex_);
  absl::node_hash_map<OwnerId, Owner> owners_ ABSL_GUARDED_BY(mutex_);         // owners that have entries
  std::set<std::pair<std::size_t, Owner*>> by_bytes_ ABSL_GUARDED_BY(mutex_);  // the same owners
  std::size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_PLAN_PLAN_CACHE_H_
