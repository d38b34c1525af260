#include "client/src/region_attempts.h"

#include <optional>

#include "absl/time/clock.h"
#include "client/src/grpc_error.h"
#include "client/src/interrupt.h"
#include "kernels/status_macros.h"

namespace warpline::client {
namespace {

// Limit of the times that one attempt is placed. A server that loses regions faster is of no use.
constexpr int kMaxPlacements = 3;

// Waits for the end of an attempt, if it is awaited. False if that lasts beyond the deadline, or the client
// is closed, or the thread is interrupted.
bool AwaitWithdrawal(const std::future<void>& ended, absl::Time deadline, const Connection& connection) {
  if (!ended.valid()) return true;
  while (ended.wait_for(kInterruptPeriod) != std::future_status::ready) {
    if (absl::Now() >= deadline || connection.closed() || Interrupted()) return false;
  }
  return true;
}

}  // namespace

absl::StatusOr<OutgoingMessage> RegionAttempts::Encode(
    const std::function<absl::StatusOr<OutgoingMessage>(RegionCall&)>& encode) {
  if (!AwaitWithdrawal(ended_, deadline_, connection_)) return error_;
  for (int i = 1;; ++i) {
    RETURN_IF_ERROR(Place());
    attempt_ = std::make_shared<RegionCall>(regions_, /*lost_is_ordinary=*/placement_.active());
    absl::StatusOr<OutgoingMessage> message = encode(*attempt_);
    // If a region was lost meanwhile, the message may have the elements of large arrays.
    if (!message.ok() || i == kMaxPlacements || !placement_.lost_region()) return message;
  }
}

absl::Status RegionAttempts::Place() {
  Attempts attempts = connection_.AttemptsUntil(deadline_);
  while (true) {
    // Placement uses at most half of the time left: the call needs the rest.
    const absl::Time now = absl::Now();
    absl::Status status = placement_.Place(now + (deadline_ - now) / 2, connection_.may_retry());
    if (status.ok()) return status;
    const std::optional<absl::Duration> delay = attempts.DelayAfter(status);
    if (!delay) return WithAttempts(status, attempts.failed() + 1);
    connection_.channel().Pause(*delay);
  }
}

bool RegionAttempts::Failed(const absl::Status& status) {
  error_ = status;
  if (!placement_.active()) {
    WithdrawAndWait(*attempt_);
    return false;
  }
  ended_ = BeginWithdrawal(attempt_);
  if (placement_.writes_in_place()) ended_.wait();
  // The server's codes for an unknown region, and for one that it lost meanwhile.
  const bool is_strange =
      absl::IsNotFound(status) || absl::IsFailedPrecondition(status) || absl::IsAborted(status);
  if (!attempt_->uses_regions() || !is_strange || was_resent_) return false;
  // A region is certainly unknown to the server when its connection has ended, which this client may notice a
  // little later.
  if (!AwaitWithdrawal(ended_, deadline_, connection_)) return false;
  was_resent_ = attempt_->lost_region();
  return was_resent_;
}

}  // namespace warpline::client
