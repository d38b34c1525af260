#include "client/src/connection.h"

#include <optional>
#include <random>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "client/src/grpc_error.h"
#include "client/src/tls_probe.h"
#include "kernels/status_macros.h"

namespace warpline::client {
namespace {

// A connection that is used only for transfers is closed after this long without a call. The next call opens
// it again.
constexpr absl::Duration kIdleConnection = absl::Minutes(1);

// 16 random bytes in hexadecimal digits, so that no other client has the same value.
std::string NewAffinity() {
  std::random_device random;
  return absl::StrFormat("%08x%08x%08x%08x", random(), random(), random(), random());
}

}  // namespace

Connection::Connection(const std::string& target, const ClientOptions& options)
    : target_(target),
      tls_(options.channel.tls),
      token_(options.channel.token),
      max_retries_(options.max_retries),
      affinity_(NewAffinity()),
      retries_([this](absl::Duration delay) { channel().Pause(delay); }) {
  channels_.push_back(std::make_unique<RawChannel>(target, options.channel, closed_.get_token(), affinity_));
}

RawChannel& Connection::channel(std::size_t index) {
  const std::lock_guard lock(mutex_);
  while (index >= channels_.size()) {
    channels_.push_back(std::make_unique<RawChannel>(
        target_, ChannelOptions{.own_connection = true, .token = token_}, channels_.front()->credentials(),
        closed_.get_token(), kIdleConnection, affinity_));
    channels_.back()->Bind();
  }
  return *channels_[index];
}

absl::StatusOr<grpc::ByteBuffer> Connection::Call(
    const std::string& method, const std::function<absl::StatusOr<OutgoingMessage>()>& encode,
    absl::Time deadline, const std::string& request_id,
    const std::function<bool(const absl::Status&)>& failed, bool repeatable,
    const RawChannel::Transmit& transmit) {
  Attempts attempts = AttemptsUntil(deadline, repeatable);
  while (true) {
    // The message is encoded again for each attempt: keeping the slices would hide when gRPC releases them.
    ASSIGN_OR_RETURN(OutgoingMessage message, encode());
    absl::StatusOr<grpc::ByteBuffer> response =
        channel().Call(method, std::move(message), deadline, request_id, transmit);
    if (response.ok()) return response;
    if (failed != nullptr && failed(response.status())) continue;
    // Waiting does not fix a TLS problem, so it is checked only once.
    if (attempts.failed() == 0) RETURN_IF_ERROR(TlsProblem(response.status(), deadline));
    const std::optional<absl::Duration> delay = attempts.DelayAfter(response.status());
    if (!delay) return WithAttempts(response.status(), attempts.failed() + 1);
    channel().Pause(*delay);
  }
}

absl::Status Connection::TlsProblem(const absl::Status& status, absl::Time deadline) const {
  if (!absl::IsUnavailable(status)) return absl::OkStatus();
  absl::Status problem = WithTlsProblem(status, target_, tls_, deadline);
  return HasTlsProblem(problem) ? problem : absl::OkStatus();
}

void Connection::RetryAsync(const std::shared_ptr<Attempts>& attempts, const absl::Status& status,
                            const std::stop_token& stop, std::function<void()> again,
                            std::function<void(absl::Status)> done) {
  const int failed = attempts->failed();
  const std::optional<absl::Duration> delay =
      stop.stop_requested() ? std::nullopt : attempts->DelayAfter(status);
  const bool explain = failed == 0 && absl::IsUnavailable(status);
  auto next = [this, attempts, status, failed, explain, retry = delay.has_value(), again = std::move(again),
               done = std::move(done)](bool open) {
    if (open && explain) {
      if (absl::Status problem = TlsProblem(status, attempts->deadline()); !problem.ok())
        return done(problem);
    }
    if (open && retry) return again();
    done(WithAttempts(status, failed + 1));
  };
  if (!delay && !explain) return next(false);
  retries_.After(delay.value_or(absl::ZeroDuration()), stop, std::move(next));
}

}  // namespace warpline::client
