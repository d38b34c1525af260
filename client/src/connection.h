// The connection of a client: channels to one server, and calls that are retried where that helps.
#ifndef WARPLINE_CLIENT_SRC_CONNECTION_H_
#define WARPLINE_CLIENT_SRC_CONNECTION_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/src/attempts.h"
#include "client/src/message_writer.h"
#include "client/src/raw_channel.h"
#include "warpline/options.h"

namespace warpline::client {

// Thread-safe.
class Connection {
 public:
  Connection(const std::string& target, const ClientOptions& options);

  // The channel of that number, which is made when it is first asked for. The first is as the options say;
  // each of the others has a connection of its own.
  RawChannel& channel(std::size_t index = 0);
  Attempts AttemptsUntil(absl::Time deadline) const { return {max_retries_, deadline}; }

  // A unary call. `encode` makes the message, once for each attempt. If `failed` is set, it runs after every
  // attempt that was sent and ended with an error, and before anything else happens. If no connection comes
  // about, the error says what is wrong with TLS, where that is the reason.
  absl::StatusOr<grpc::ByteBuffer> Call(const std::string& method,
                                        const std::function<absl::StatusOr<OutgoingMessage>()>& encode,
                                        absl::Time deadline, const std::string& request_id,
                                        const std::function<void()>& failed = nullptr);

 private:
  const std::string target_;
  const TlsOptions tls_;
  const std::string token_;
  const int max_retries_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<RawChannel>> channels_;
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_CONNECTION_H_
