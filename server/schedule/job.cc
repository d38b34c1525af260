#include "server/schedule/job.h"

#include <utility>

namespace warpline {

absl::Status CheckAlive(const Job& job) {
  if (job.cancelled != nullptr && job.cancelled->load(std::memory_order_relaxed)) {
    return absl::CancelledError("the request was cancelled");
  }
  if (MonotonicClock::now() >= job.deadline) {
    return absl::DeadlineExceededError("the deadline passed before the start");
  }
  return absl::OkStatus();
}

void Finish(Job job, Result result) {
  result.seconds = job.seconds;
  // Whatever these hold of the request and of its operands is released before the budget is, and before the
  // answer.
  job.copy_in = nullptr;
  job.copied = nullptr;
  if (result.status.ok()) {
    result.output.MarkHeld();
    job.ticket.MarkUnread();
    result.ticket = std::move(job.ticket);
  } else {
    result.output.Release();
    job.ticket.Return();
  }
  job.done(std::move(result));
}

void FinishWith(Job job, absl::Status status) {
  Result result;
  result.status = std::move(status);
  Finish(std::move(job), std::move(result));
}

}  // namespace warpline
