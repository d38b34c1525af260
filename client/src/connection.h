// The connection of a client: channels to one server. Calls are retried if that can help.
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

  // Returns the channel with this index, and makes it on first use. Channel 0 follows the options. Each other
  // channel has its own connection, which closes when it is idle.
  RawChannel& channel(std::size_t index = 0);
  // From now on, all calls go to one server, because they name tensors there (RawChannel::Bind).
  void Bind() { channel().Bind(); }
  bool may_retry() const { return max_retries_ > 0; }
  // `repeatable`: as in Attempts.
  Attempts AttemptsUntil(absl::Time deadline, bool repeatable = true) const {
    return {max_retries_, deadline, closed_.get_token(), repeatable};
  }

  // A unary call. `encode` makes the message, once for each attempt. If `failed` is set, it runs first after
  // every attempt that was sent and ended with an error. If it returns true, the next attempt follows at once
  // and does not count as a retry. If TLS is the reason why there is no connection, the error says what is
  // wrong with TLS.
  absl::StatusOr<grpc::ByteBuffer> Call(const std::string& method,
                                        const std::function<absl::StatusOr<OutgoingMessage>()>& encode,
                                        absl::Time deadline, const std::string& request_id,
                                        const std::function<bool(const absl::Status&)>& failed = nullptr,
                                        bool repeatable = true,
                                        const RawChannel::Transmit& transmit = nullptr);

  // Continues after a failed attempt. If there is to be another attempt, calls `again` after the required
  // delay. Otherwise calls `done` with the error. `stop` ends the delay.
  void RetryAsync(const std::shared_ptr<Attempts>& attempts, const absl::Status& status,
                  const std::stop_token& stop, std::function<void()> again,
                  std::function<void(absl::Status)> done);

  // After the delay, calls `then(true)` on the retry thread. Calls `then(false)` as soon as `stop` is
  // requested or the client is closed.
  void Later(absl::Duration delay, std::stop_token stop, RetryThread::Then then) {
    retries_.After(delay, std::move(stop), std::move(then));
  }

  // Asynchronous calls are not retried after this.
  void EndRetries() { retries_.Close(); }
  // Calls in flight and all later calls end with CANCELLED.
  void Close() {
    closed_.request_stop();
    EndRetries();
  }
  bool closed() const { return closed_.stop_requested(); }

 private:
  // Returns the error for the caller if TLS is why there is no connection, else OK.
  absl::Status TlsProblem(const absl::Status& status, absl::Time deadline) const;

  const std::string target_;
  const TlsOptions tls_;
  const std::string token_;
  const int max_retries_;
  const std::string affinity_;
  std::stop_source closed_;
  RetryThread retries_;  // calls in flight use the retry thread
  std::mutex mutex_;
  std::vector<std::unique_ptr<RawChannel>> channels_;
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_CONNECTION_H_
