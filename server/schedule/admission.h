// The budget of admitted work: so many jobs, so many bytes, shared fairly. What exceeds it is refused at
// once.
#ifndef WARPLINE_SERVER_SCHEDULE_ADMISSION_H_
#define WARPLINE_SERVER_SCHEDULE_ADMISSION_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/base/mutex.h"
#include "server/observe/metrics.h"
#include "server/observe/owner_metrics.h"
#include "server/schedule/owner.h"
#include "server/schedule/owner_limits.h"

namespace warpline {

class Admission;

// A share of the budget: one job, and bytes. It is returned when the ticket is destroyed. Empty by default.
class Ticket {
 public:
  Ticket() = default;
  Ticket(Ticket&& other) noexcept { *this = std::move(other); }
  Ticket& operator=(Ticket&& other) noexcept;
  ~Ticket() { Return(); }
  // Says that the job has ended and only its client's reading keeps the share.
  void MarkUnread();
  void Return();

 private:
  friend class Admission;
  struct Share {
    OwnerId owner = 0;
    std::int64_t bytes = 0;
    bool small = false;
    bool unread = false;
  };
  Ticket(Admission* admission, const Share& share) : admission_(admission), share_(share) {}
  Admission* admission_ = nullptr;
  Share share_;
};

// Thread-safe. Outlives its tickets.
class Admission {
 public:
  struct Options {
    std::int64_t max_jobs = 0;
    std::int64_t max_bytes = 0;  // of requests and results together
    // What has at most so many bytes is a small request. A quarter of the jobs is kept for those, and beyond
    // max_bytes they get `reserved_bytes` more, or a quarter of max_bytes if that is less.
    std::int64_t small_bytes = 128 << 10;
    std::int64_t reserved_bytes = std::int64_t{64} << 20;
    absl::Duration retry_after = absl::Milliseconds(50);  // told to those refused
    LimitsOf limits_of = nullptr;
    OwnerMetrics* owner_metrics = nullptr;  // null where there are no identities
  };
  Admission(Options options, Metrics& metrics);

  // INVALID_ARGUMENT if all of the budget would not do.
  absl::Status CheckFits(std::int64_t bytes) const;
  // RESOURCE_EXHAUSTED with a retry delay when the budget is spent, UNAVAILABLE once draining. Of the budget
  // being spent more than half, an owner beside others gets no more than an equal share; and an owner of
  // whose results more than half of the budget's bytes is unread gets nothing before it has read some.
  // Beyond its own limits an owner gets nothing, whatever others leave. `size` decides whether the request is
  // small; it may be more than the bytes that it takes of the budget.
  absl::StatusOr<Ticket> Admit(std::int64_t bytes, OwnerId owner, std::int64_t size);
  absl::StatusOr<Ticket> Admit(std::int64_t bytes, OwnerId owner) { return Admit(bytes, owner, bytes); }
  // What this owner can have admitted at one time at most, whatever others leave.
  std::int64_t MostBytesOf(OwnerId owner) const;

  // From now on nothing is admitted.
  void Drain();
  // Waits until every ticket is back; false if that did not happen by the deadline.
  bool AwaitIdle(MonotonicTime deadline);

 private:
  friend class Ticket;
  struct Use {
    std::int64_t jobs = 0, bytes = 0;
  };
  struct OwnersUse {
    Use all;
    std::int64_t unread_bytes = 0;
  };
  struct Refusal {
    const char* reason;  // the label of the metric
    std::string text;
  };
  std::optional<Refusal> WhyNot(std::int64_t bytes, OwnerId owner, bool small,
                                const OwnerLimits& limits) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsSmall(std::int64_t bytes) const { return bytes <= options_.small_bytes; }
  std::int64_t LimitWithReserve() const {
    return options_.max_bytes + std::min(options_.reserved_bytes, options_.max_bytes / 4);
  }
  // What the owner of the share has, by so many jobs of its kind.
  void Show(const Ticket::Share& share, int jobs);
  void MarkUnread(const Ticket::Share& share);
  void Return(const Ticket::Share& share);

  const Options options_;
  Metrics& metrics_;
  Mutex mutex_;
  Use all_ ABSL_GUARDED_BY(mutex_);
  Use large_ ABSL_GUARDED_BY(mutex_);  // the part of it that is not small
  absl::flat_hash_map<OwnerId, OwnersUse> owners_ ABSL_GUARDED_BY(mutex_);  // that have tickets
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_SCHEDULE_ADMISSION_H_
