// The budget of admitted work: a number of jobs and of bytes, shared fairly between clients. What does not
// fit is refused at once.
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

// A part of the budget: one job and some bytes. It is returned when the ticket is destroyed. Empty by
// default.
class Ticket {
 public:
  Ticket() = default;
  Ticket(Ticket&& other) noexcept { *this = std::move(other); }
  Ticket& operator=(Ticket&& other) noexcept;
  ~Ticket() { Return(); }
  // Marks the job as ended: the ticket is now kept only until the client has read the result.
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
    // A request of at most `small_bytes` is small. A quarter of the jobs is reserved for small requests.
    // Beyond max_bytes these get `reserved_bytes` more, or a quarter of max_bytes if that is less.
    std::int64_t small_bytes = 128 << 10;
    std::int64_t reserved_bytes = std::int64_t{64} << 20;
    absl::Duration retry_after = absl::Milliseconds(50);  // the delay that refused clients are told
    LimitsOf limits_of = nullptr;
    OwnerMetrics* owner_metrics = nullptr;  // null if there are no identities
  };
  Admission(Options options, Metrics& metrics);

  // INVALID_ARGUMENT if the bytes are more than the whole budget.
  absl::Status CheckFits(std::int64_t bytes) const;
  // RESOURCE_EXHAUSTED with a retry delay when the budget is used up, UNAVAILABLE once draining. While more
  // than half of the budget is in use, each share gets at most an equal part of it, and so does each client
  // within its share. A client with unread results of more than half of the budget's bytes gets nothing until
  // it has read some. An owner never gets more than its quota, even if the rest is unused. `size` decides
  // whether the request is small; it may be larger than `bytes`, which count in the budget.
  absl::StatusOr<Ticket> Admit(std::int64_t bytes, const Caller& caller, std::int64_t size);
  absl::StatusOr<Ticket> Admit(std::int64_t bytes, const Caller& caller) {
    return Admit(bytes, caller, bytes);
  }
  // Admits bytes for the transfers of a job that has already been admitted. Counts no further job.
  absl::StatusOr<Ticket> AdmitMore(std::int64_t bytes, const Caller& caller) {
    return Take({.caller = caller, .bytes = bytes, .small = IsSmall(bytes), .jobs = 0});
  }
  // Returns the most bytes that this owner can have admitted at one time if the budget is otherwise unused.
  std::int64_t MostBytesOf(OwnerId owner) const;

  // Jobs that are already admitted stay, even if they are more.
  void SetMaxJobs(std::int64_t max_jobs);

  // After this call nothing is admitted.
  void Drain();
  // Waits until all tickets have been returned. Returns false if that has not happened by the deadline.
  bool AwaitIdle(MonotonicTime deadline);

 private:
  friend class Ticket;
  struct Use {
    std::int64_t tickets = 0, jobs = 0, bytes = 0;
  };
  struct ShareUse {
    Use use;
    std::int64_t clients = 0;  // clients that have tickets
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
  // Returns why the part is refused, or nothing if it is admitted.
  std::optional<Refusal> WhyNot(const Ticket::Part& part, const OwnerLimits& limits) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<Refusal> BeyondQuota(const Ticket::Part& part, const OwnerLimits& limits) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // `sharers`: the number of claimants that get equal parts of the budget, including this one.
  std::optional<Refusal> BeyondShare(const Ticket::Part& part, const Use& own, std::int64_t sharers) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsSmall(std::int64_t bytes) const { return bytes <= options_.small_bytes; }
  std::int64_t LimitWithReserve() const {
    return options_.max_bytes + std::min(options_.reserved_bytes, options_.max_bytes / 4);
  }
  // Adds `tickets` tickets like this one to all counts, or removes them if `tickets` is negative.
  void Count(const Ticket::Part& part, int tickets) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MarkUnread(const Ticket::Part& part);
  void Return(const Ticket::Part& part);

  const Options options_;
  std::int64_t max_jobs_ ABSL_GUARDED_BY(mutex_);
  Metrics& metrics_;
  Mutex mutex_;
  Use all_ ABSL_GUARDED_BY(mutex_);
  Use large_ ABSL_GUARDED_BY(mutex_);  // the part of all_ that is not small
  // The shares and the clients that have tickets.
  absl::flat_hash_map<OwnerId, ShareUse> shares_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<Claimant, ClientUse> clients_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<OwnerId, Use> owners_ ABSL_GUARDED_BY(mutex_);  // only where owners have limits
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_SCHEDULE_ADMISSION_H_
