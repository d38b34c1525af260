// The connection of a client: channels to one server, and calls that are retried where that helps.
#ifndef WARPLINE_CLIENT_SRC_CONNECTION_H_
#define WARPLINE_CLIENT_SRC_CONNECTION_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/src/attempts.h"
#include "client/src/message_writer.h"
#include "client/src/raw_channel.h"
#include "client/src/retry_thread.h"
#include "warpline/options.h"

namespace warpline::client {

// Thread-safe.
class Connection {
 public:
  Connection(const std::string& target, const ClientOptions& options);
  ~Connection() { EndRetries(); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // The channel of that number, which is made when it is first asked for. The first is as the options say.
  // Each of the others has a connection of its own, which closes when it is idle.
  RawChannel& channel(std::size_t index = 0);
  // From now on, calls are bound to one server, as they name tensors there (RawChannel::Bind).
  void Bind() { channel().Bind(); }
  bool may_retry() const { return max_retries_ > 0; }
  // `repeatable`: as in Attempts.
  Attempts AttemptsUntil(absl::Time deadline, bool repeatable = true) const {
    return {max_retries_, deadline, closed_.get_token(), repeatable};
  }

  // A unary call. `encode` makes the message, once for each attempt. If `failed` is set, it runs after every
  // attempt that was sent and ended with an error, and before anything else happens. If it returns true, the
  // next attempt follows at once, and does not count as a retry. If no connection comes about, the error says
  // what is wrong with TLS, where that is the reason.
  absl::StatusOr<grpc::ByteBuffer> Call(const std::string& method,
                                        const std::function<absl::StatusOr<OutgoingMessage>()>& encode,
                                        absl::Time deadline, const std::string& request_id,
                                        const std::function<bool(const absl::Status&)>& failed = nullptr,
                                        bool repeatable = true,
                                        const RawChannel::Transmit& transmit = nullptr);

  // Goes on after an attempt that failed: calls `again` if there is to be another, after the delay that
  // there must be; else `done` with the error. `stop` ends the delay.
  void RetryAsync(const std::shared_ptr<Attempts>& attempts, const absl::Status& status,
                  const std::stop_token& stop, std::function<void()> again,
                  std::function<void(absl::Status)> done);

  // Calls `then` after the delay, on the thread of retries: with true, or with false as soon as `stop` is
  // requested or the client closed.
  void Later(absl::Duration delay, std::stop_token stop, RetryThread::Then then) {
    retries_.After(delay, std::move(stop), std::move(then));
  }

  // Calls that nobody waits for are not made again any more.
  void EndRetries() { retries_.Close(); }
  // Calls in flight, and all that come later, end with CANCELLED.
  void Close() {
    closed_.request_stop();
    EndRetries();
  }
  bool closed() const { return closed_.stop_requested(); }

 private:
  // The error as the caller gets it, if TLS is why there is no connection; OK if it is not.
  absl::Status TlsProblem(const absl::Status& status, absl::Time deadline) const;

  const std::string target_;
  const TlsOptions tls_;
  const std::string token_;
  const int max_retries_;
  const std::string affinity_;
  std::stop_source closed_;
  RetryThread retries_;  // calls in flight use it
  std::mutex mutex_;
  std::vector<std::unique_ptr<RawChannel>> channels_;
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_CONNECTION_H_
