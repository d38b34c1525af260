// The cancellation of a call, which may happen at any time.
#ifndef WARPLINE_SERVER_RPC_CANCELLATION_H_
#define WARPLINE_SERVER_RPC_CANCELLATION_H_

#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "server/base/mutex.h"
#include "server/schedule/scheduler.h"

namespace warpline {

// Cancels whatever a call waits for: its job, or its uploads. A wait for uploads ends by the cancellation or
// by the last byte, whichever is first. Thread-safe.
class Cancellation {
 public:
  explicit Cancellation(Scheduler& scheduler) : scheduler_(scheduler) {}

  void Cancel(const absl::Status& why);
  // From now on the call waits for this job. A call may have two jobs, one after the other. The second one
  // may be submitted before the thread that submitted the first one gets here.
  void SubmittedAs(Scheduler::JobId job);

  // Returns why the call was cancelled; OK if it was not.
  absl::Status why();

  // Begins a wait for uploads: `if_cancelled` is called once the call is cancelled, unless Arrived is called
  // first. If the cancellation or Arrived has already happened, nothing is called: the result says which, and
  // the caller must stop.
  enum class Wait { kWaits, kCancelled, kArrived };
  Wait BeginWait(std::function<void(const absl::Status&)> if_cancelled);
  // All uploads have arrived. Returns whether this ends the wait.
  bool Arrived();

 private:
  Scheduler& scheduler_;
  Mutex mutex_;
  std::optional<Scheduler::JobId> job_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> why_ ABSL_GUARDED_BY(mutex_);
  std::function<void(const absl::Status&)> on_cancel_ ABSL_GUARDED_BY(mutex_);  // while it waits for uploads
  bool arrived_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_CANCELLATION_H_
