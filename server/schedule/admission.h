// The budget of admitted work: so many jobs, so many bytes. What exceeds it is refused at once.
#ifndef WARPLINE_SERVER_SCHEDULE_ADMISSION_H_
#define WARPLINE_SERVER_SCHEDULE_ADMISSION_H_

#include <cstdint>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/base/mutex.h"
#include "server/observe/metrics.h"

namespace warpline {

class Admission;

// A share of the budget; returned when destroyed. Empty by default.
class Ticket {
 public:
  Ticket() = default;
  Ticket(Ticket&& other) noexcept { *this = std::move(other); }
  Ticket& operator=(Ticket&& other) noexcept;
  ~Ticket() { Return(); }
  void Return();

 private:
  friend class Admission;
  Ticket(Admission* admission, std::int64_t bytes) : admission_(admission), bytes_(bytes) {}
  Admission* admission_ = nullptr;
  std::int64_t bytes_ = 0;
};

// Thread-safe. Outlives its tickets.
class Admission {
 public:
  struct Options {
    std::int64_t max_jobs = 0;
    std::int64_t max_bytes = 0;                           // of requests and results together
    absl::Duration retry_after = absl::Milliseconds(50);  // told to those refused
  };
  Admission(Options options, Metrics& metrics);

  // INVALID_ARGUMENT if all of the budget would not do.
  absl::Status CheckFits(std::int64_t bytes) const;
  // RESOURCE_EXHAUSTED with a retry delay when the budget is spent, UNAVAILABLE once draining.
  absl::StatusOr<Ticket> Admit(std::int64_t bytes);

  // From now on nothing is admitted.
  void Drain();
  // Waits until every ticket is back; false if that did not happen by the deadline.
  bool AwaitIdle(absl::Time deadline);

 private:
  friend class Ticket;
  void Return(std::int64_t bytes);

  const Options options_;
  Metrics& metrics_;
  Mutex mutex_;
  std::int64_t jobs_ ABSL_GUARDED_BY(mutex_) = 0;
  std::int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_SCHEDULE_ADMISSION_H_
