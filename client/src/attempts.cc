#include "client/src/attempts.h"

#include <algorithm>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/src/interrupt.h"
#include "warpline/error.h"

namespace warpline::client {
namespace {

// The first delay if the server gives none, for example after UNAVAILABLE while it restarts. The delay
// doubles after each attempt.
constexpr absl::Duration kFirstRetryDelay = absl::Milliseconds(100);
// A full server asks for a delay of about 0.1 s, since it does not know when other calls end. If it is still
// full after that, the delay doubles each time, up to this maximum.
constexpr absl::Duration kMaxDoubledDelay = absl::Seconds(4);

// A server with gRPC 1.51 shrinks the flow-control windows of its connections as received messages fill its
// memory. It then resets a stream with more unread bytes than the new window, if the stream ends with a
// separate frame, as uploads do. The client treats this reset like a lost connection.
bool WindowWasLowered(const absl::Status& status) {
  return absl::IsInternal(status) && status.message() == "Received RST_STREAM with error code 1";
}

// gRPC itself cancels a call that arrives while a server closes its connections. CANCELLED from the server's
// own code is final.
bool CutOff(const absl::Status& status) { return absl::IsCancelled(status) && !DetailsOf(status).answered; }

// The connection ended after the server's headers and before its status. This happens behind a proxy whose
// server is gone. gRPC 1.83 says what it could not write then.
bool StreamWasRemoved(const absl::Status& status) {
  const bool is_removed = absl::IsUnknown(status) && status.message() == "Stream removed";
  const bool is_unwritten =
      absl::IsInternal(status) && absl::StartsWith(status.message(), "Error in HTTP transport");
  return (is_removed || is_unwritten) && !DetailsOf(status).answered;
}

// Clients that a restart cut off at the same time should not all come back at the same time. The server
// itself spreads the delays that it gives.
absl::Duration Jittered(absl::Duration delay) {
  thread_local std::minstd_rand random(std::random_device{}());
  return delay * std::uniform_real_distribution<double>(0.5, 1.5)(random);
}

}  // namespace

absl::Status CheckTimeout(absl::Duration timeout) {
  if (timeout > absl::ZeroDuration() && timeout < absl::InfiniteDuration()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a deadline must be finite and above zero, not ", absl::FormatDuration(timeout)));
}

std::optional<absl::Duration> Attempts::DelayAfter(const absl::Status& status) {
  if (failed_ >= max_retries_ || closed_.stop_requested() || WasInterrupted()) return std::nullopt;
  const bool is_unavailable =
      absl::IsUnavailable(status) || WindowWasLowered(status) || CutOff(status) || StreamWasRemoved(status);
  if (!is_unavailable && !absl::IsResourceExhausted(status) && !absl::IsAborted(status)) return std::nullopt;
  const ErrorDetails details = DetailsOf(status);
  if (!repeatable_ && !details.answered) return std::nullopt;
  std::optional<absl::Duration> delay = details.retry_delay;
  if (delay) delay = std::max(*delay, std::min(*delay * (1 << std::min(failed_, 8)), kMaxDoubledDelay));
  if (!delay && is_unavailable) delay = Jittered(kFirstRetryDelay * (1 << std::min(failed_, 8)));
  if (!delay || absl::Now() + *delay >= deadline_) return std::nullopt;
  ++failed_;
  return delay;
}

}  // namespace warpline::client
