// A budget of units that clients may hold for any length of time, shared fairly between them.
#ifndef WARPLINE_SERVER_SCHEDULE_FAIR_BUDGET_H_
#define WARPLINE_SERVER_SCHEDULE_FAIR_BUDGET_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/base/mutex.h"
#include "server/base/owner.h"

namespace warpline {

// Clients decide when they return units, so some must be left for those who come later. A share may hold
// three quarters of what the other shares leave. Of that, a client may hold three quarters of what the
// share's other clients leave. So one share alone may hold 3/4, two shares 3/7 each, three 3/10 each, and a
// new share always finds room. (Dynamic thresholds: A. K. Choudhury, E. L. Hahne, "Dynamic Queue Length
// Thresholds for Shared-Memory Packet Switches", 1998, with alpha = 3.) The first units of a share are never
// refused while any are left, even if few are left. A budget from which many units are taken at a time cannot
// promise that, because one call would take everything.
//
// Thread-safe. Outlives its parts.
class FairBudget {
 public:
  struct Options {
    std::int64_t total = 0;  // units
    std::string what;        // name of the units, in the plural: "transfers"
    absl::Duration retry_after = absl::Milliseconds(50);
    bool first_is_granted = true;  // first units: a share gets any that are left, a client its share's limit
  };
  explicit FairBudget(Options options) : options_(std::move(options)) {}
  FairBudget(const FairBudget&) = delete;
  FairBudget& operator=(const FairBudget&) = delete;

  // Units that a claimant holds. They are returned when this is destroyed. Empty by default.
  class Part {
   public:
    Part() = default;
    Part(Part&& other) noexcept { *this = std::move(other); }
    Part& operator=(Part&& other) noexcept;
    ~Part() { Return(); }
    void Return();

   private:
    friend class FairBudget;
    FairBudget* budget_ = nullptr;
    Claimant claimant_;
    std::int64_t units_ = 0;
  };

  // RESOURCE_EXHAUSTED, with the figures and a delay, if the claimant may not have that many more units.
  absl::StatusOr<Part> Take(const Claimant& claimant, std::int64_t units = 1);
  std::int64_t total() const { return options_.total; }
  std::int64_t used() const;
  // Returns the most that the claimant may hold when nobody else holds anything.
  std::int64_t Largest(const Claimant& claimant) const;
  // Returns the units that a share holds.
  std::int64_t held(OwnerId share) const;

 private:
  // Returns how much the claimant may hold at present, including what it holds already.
  std::int64_t LimitOf(const Claimant& claimant) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::int64_t Held(OwnerId share) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::int64_t Held(const Claimant& claimant) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Add(const Claimant& claimant, std::int64_t units) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  mutable Mutex mutex_;
  std::int64_t used_ ABSL_GUARDED_BY(mutex_) = 0;
  // The shares and the clients that hold some units.
  absl::flat_hash_map<OwnerId, std::int64_t> shares_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<Claimant, std::int64_t> clients_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_SCHEDULE_FAIR_BUDGET_H_
