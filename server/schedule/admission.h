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
#include "server/base/owner.h"
#include "server/base/owner_limits.h"
#include "server/observe/metrics.h"
#include "server/observe/owner_metrics.h"

namespace warpline {

class Admission;

// A part of the budget: one job, and bytes. It is returned when the ticket is destroyed. Empty by default.
class Ticket {
 public:
  Ticket() = default;
  Ticket(Ticket&& other) noexcept { *this = std::move(other); }
  Ticket& operator=(Ticket&& other) noexcept;
  ~Ticket() { Return(); }
  // Says that the job has ended, and that the part is kept only until the client has read the result.
  void MarkUnread();
  void Return();

 private:
  friend class Admission;
  struct Part {
    Caller caller;
    std::int64_t bytes = 0;
    bool small = false;
    bool unread = false;
    int jobs = 1;
  };
  Ticket(Admission* admission, const Part& part) : admission_(admission), part_(part) {}
  Admission* admission_ = nullptr;
  Part part_;
};

// Thread-safe. Outlives its tickets.
class Admission {
 public:
  struct Options {
    std::int64_t max_jobs = 0;
    std::int64_t max_bytes = 0;  // of requests and results together
    // A request of at most `small_bytes` is small. A quarter of the jobs is kept for small requests. Beyond
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
  // RESOURCE_EXHAUSTED with a retry delay when the budget is spent, UNAVAILABLE once draining. While more
  // than half of the budget is spent, each share beside others gets an equal part at most, and so does each
  // client of a share. A client that has not read results of more than half of the budget's bytes gets
  // nothing before it has read some. Beyond its own quota an owner gets nothing, whatever others leave.
  // `size` decides whether the request is small; it may be more than the bytes that it takes of the budget.
  absl::StatusOr<Ticket> Admit(std::int64_t bytes, const Caller& caller, std::int64_t size);
  absl::StatusOr<Ticket> Admit(std::int64_t bytes, const Caller& caller) {
    return Admit(bytes, caller, bytes);
  }
  // Bytes for the transfers of a job that has been admitted already: no further job.
  absl::StatusOr<Ticket> AdmitMore(std::int64_t bytes, const Caller& caller) {
    return Take({.caller = caller, .bytes = bytes, .small = IsSmall(bytes), .jobs = 0});
  }
  // Returns the most bytes that this owner can have admitted at one time, whatever others leave.
  std::int64_t MostBytesOf(OwnerId owner) const;

  // From now on nothing is admitted.
  void Drain();
  // Waits until every ticket is back; false if that did not happen by the deadline.
  bool AwaitIdle(MonotonicTime deadline);

 private:
  friend class Ticket;
  struct Use {
    std::int64_t tickets = 0, jobs = 0, bytes = 0;
  };
  struct ShareUse {
    Use use;
    std::int64_t clients = 0;  // that have tickets
  };
  struct ClientUse {
    Use use;
    std::int64_t unread_bytes = 0;
  };
  struct Refusal {
    const char* reason;  // the label of the metric
    std::string text;
  };
  absl::StatusOr<Ticket> Take(const Ticket::Part& part);
  // Why the part is refused; nothing if it is not.
  std::optional<Refusal> WhyNot(const Ticket::Part& part, const OwnerLimits& limits) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<Refusal> BeyondQuota(const Ticket::Part& part, const OwnerLimits& limits) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // `sharers`: how many have equal parts of the budget, this one included.
  std::optional<Refusal> BeyondShare(const Ticket::Part& part, const Use& own, std::int64_t sharers) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsSmall(std::int64_t bytes) const { return bytes <= options_.small_bytes; }
  std::int64_t LimitWithReserve() const {
    return options_.max_bytes + std::min(options_.reserved_bytes, options_.max_bytes / 4);
  }
  // Adds so many jobs of this size, or takes them away.
  void Count(const Ticket::Part& part, int tickets) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MarkUnread(const Ticket::Part& part);
  void Return(const Ticket::Part& part);

  const Options options_;
  Metrics& metrics_;
  Mutex mutex_;
  Use all_ ABSL_GUARDED_BY(mutex_);
  Use large_ ABSL_GUARDED_BY(mutex_);  // the part of it that is not small
  // The shares and the clients that have tickets.
  absl::flat_hash_map<OwnerId, ShareUse> shares_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<Claimant, ClientUse> clients_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<OwnerId, Use> owners_ ABSL_GUARDED_BY(mutex_);  // only where owners have limits
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_SCHEDULE_ADMISSION_H_
