// Plans that are known already, so that a known request is neither parsed nor validated again.
#ifndef WARPLINE_SERVER_PLAN_PLAN_CACHE_H_
#define WARPLINE_SERVER_PLAN_PLAN_CACHE_H_

#include <cstddef>
#include <list>
#include <string>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "server/base/mutex.h"
#include "server/observe/metrics.h"
#include "server/plan/plan.h"

namespace warpline {

// A bounded map, the least recently used plan goes first. Counts hits, misses, evictions and entries.
// Thread-safe.
//
// The key is whatever the door makes of a request so that equal keys mean equal plans: see PlanKey in
// server/rpc/codec/codec.h. It is compared as a whole; a hash that collides costs time and nothing else.
class PlanCache {
 public:
  // `max_bytes` bounds the keys and an estimate of the plans. A plan that alone takes more than a sixteenth
  // of it is not kept.
  PlanCache(std::size_t max_bytes, Metrics& metrics) : max_bytes_(max_bytes), metrics_(metrics) {}
  PlanCache(const PlanCache&) = delete;
  PlanCache& operator=(const PlanCache&) = delete;

  // Null if the plan is not known.
  PlanPtr Find(std::string_view key);
  void Insert(std::string key, PlanPtr plan);

 private:
  struct Entry {
    std::string key;
    PlanPtr plan;
    std::size_t bytes;
  };

  const std::size_t max_bytes_;
  Metrics& metrics_;
  Mutex mutex_;
  std::list<Entry> entries_ ABSL_GUARDED_BY(mutex_);  // most recently used first
  // The keys view the strings in the list's nodes, which never move.
  absl::flat_hash_map<absl::string_view, std::list<Entry>::iterator> index_ ABSL_GUARDED_BY(mutex_);
  std::size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_PLAN_PLAN_CACHE_H_
