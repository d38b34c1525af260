#include "server/rpc/cancellation.h"

#include <algorithm>
#include <utility>

namespace warpline {

void Cancellation::Cancel(const absl::Status& why) {
  std::function<void(const absl::Status&)> waiting;
  {
    MutexLock lock(&mutex_);
    why_ = why;
    if (job_.has_value()) scheduler_.Cancel(*job_, why);
    waiting = std::exchange(on_cancel_, nullptr);
  }
  if (waiting) waiting(why);
}

void Cancellation::SubmittedAs(Scheduler::JobId job) {
  MutexLock lock(&mutex_);
  job_ = std::max(job_.value_or(0), job);
  if (why_.has_value()) scheduler_.Cancel(*job_, *why_);
}

absl::Status Cancellation::why() {
  MutexLock lock(&mutex_);
  return why_.value_or(absl::OkStatus());
}

Cancellation::Wait Cancellation::BeginWait(std::function<void(const absl::Status&)> if_cancelled) {
  MutexLock lock(&mutex_);
  if (why_.has_value()) return Wait::kCancelled;
  if (arrived_) return Wait::kArrived;
  on_cancel_ = std::move(if_cancelled);
  return Wait::kWaits;
}

bool Cancellation::Arrived() {
  MutexLock lock(&mutex_);
  arrived_ = true;
  return std::exchange(on_cancel_, nullptr) != nullptr;
}

}  // namespace warpline
