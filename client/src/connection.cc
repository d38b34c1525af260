#include "client/src/connection.h"

#include <optional>
#include <utility>

#include "absl/time/clock.h"
#include "client/src/tls_probe.h"
#include "kernels/status_macros.h"

namespace warpline::client {

Connection::Connection(const std::string& target, const ClientOptions& options)
    : target_(target),
      tls_(options.channel.tls),
      token_(options.channel.token),
      max_retries_(options.max_retries) {
  channels_.push_back(std::make_unique<RawChannel>(target, options.channel));
}

RawChannel& Connection::channel(std::size_t index) {
  const std::lock_guard lock(mutex_);
  while (index >= channels_.size()) {
    channels_.push_back(std::make_unique<RawChannel>(
        target_, ChannelOptions{.own_connection = true, .tls = tls_, .token = token_}));
  }
  return *channels_[index];
}

absl::StatusOr<grpc::ByteBuffer> Connection::Call(
    const std::string& method, const std::function<absl::StatusOr<OutgoingMessage>()>& encode,
    absl::Time deadline, const std::string& request_id, const std::function<void()>& failed) {
  Attempts attempts = AttemptsUntil(deadline);
  while (true) {
    // Encoded anew for each attempt: keeping the slices would hide when gRPC lets go of them.
    ASSIGN_OR_RETURN(OutgoingMessage message, encode());
    absl::StatusOr<grpc::ByteBuffer> response =
        channel().Call(method, std::move(message), deadline, request_id);
    if (response.ok()) return response;
    if (failed != nullptr) failed();
    const std::optional<absl::Duration> delay = attempts.DelayAfter(response.status());
    if (!delay) return WithTlsProblem(response.status(), target_, tls_, deadline);
    channel().Pause(*delay);
  }
}

}  // namespace warpline::client
