// Unary calls on slices: connections, deadlines, and the release of borrowed memory. It knows nothing about
// arrays. Streaming calls are in stream_call.h.
#ifndef WARPLINE_CLIENT_SRC_RAW_CHANNEL_H_
#define WARPLINE_CLIENT_SRC_RAW_CHANNEL_H_

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/byte_buffer.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/src/message_writer.h"
#include "warpline/options.h"

namespace warpline::client {

inline constexpr char kRequestIdKey[] = "x-request-id";
// How often to check whether gRPC has released borrowed memory. It nearly always has when a call ends. Only a
// cancelled call may still have bytes on their way into a socket.
inline constexpr std::chrono::milliseconds kReleasePeriod(1);

// Thread-safe.
class RawChannel {
 public:
  using Done = std::function<void(absl::StatusOr<grpc::ByteBuffer>)>;
  // Sends the uploads of a call. It is called before the server's answer, with the server's serialized
  // Uploads message. `ended` says that the server has answered. An error ends the call, except NotFound: then
  // the server's own status says why the uploads have ended.
  using Transmit = std::function<absl::Status(const std::string& uploads, const std::stop_token& ended)>;

  // Connects at the first call. Target: "host:port", "unix:/path", or anything else gRPC resolves. If the
  // files in the options are invalid, every call fails. `closed` ends current and later calls with CANCELLED.
  // `affinity`: see Bind.
  RawChannel(const std::string& target, const ChannelOptions& options, std::stop_token closed = {},
             std::string affinity = "");
  // Uses credentials that another channel has made. The connection is closed after `idle` without calls.
  using MaybeCredentials = absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>>;
  RawChannel(const std::string& target, const ChannelOptions& options, MaybeCredentials credentials,
             std::stop_token closed, absl::Duration idle, std::string affinity);
  // Waits for the calls in flight; their callbacks must not start new ones.
  ~RawChannel();

  RawChannel(const RawChannel&) = delete;
  RawChannel& operator=(const RawChannel&) = delete;

  // `deadline` is absolute. Returns when the call is over and borrowed payloads are released. `request_id`
  // may be empty. Errors are gRPC's, with details (grpc_error.h).
  absl::StatusOr<grpc::ByteBuffer> Call(const std::string& method, OutgoingMessage message,
                                        absl::Time deadline, const std::string& request_id,
                                        const Transmit& transmit = nullptr);

  // Same as Call, but does not wait: `done` runs on this channel's thread, so it delays the next response. It
  // may start calls. `stop` cancels the call.
  void CallAsync(const std::string& method, OutgoingMessage message, absl::Time deadline,
                 const std::string& request_id, Done done, const std::stop_token& stop = {});

  // From now on, calls carry the affinity. A load balancer then sends all calls with the same affinity to one
  // server, and a server counts all their connections as one client.
  void Bind() { bound_ = true; }
  // Begins to connect, without waiting.
  void BeginConnecting() { (void)channel_->GetState(/*try_to_connect=*/true); }

  // Waits for `delay` between two attempts of a call, while the channel connects. Returns early if the
  // channel is closed or the thread is interrupted.
  void Pause(absl::Duration delay) const;

  const MaybeCredentials& credentials() const { return credentials_; }
  const std::stop_token& closed() const { return closed_; }
  grpc::GenericStub& stub() { return stub_; }
  // Returns the context of one call. `request_id` may be empty.
  std::unique_ptr<grpc::ClientContext> NewContext(absl::Time deadline, const std::string& request_id) const;

 private:
  struct AsyncCall;
  struct FinishedCall;
  // Sends the uploads, while `awaited` waits for the answer on another thread. Returns why the call was
  // cancelled; OK if it was not.
  static absl::Status SendUploads(const Transmit& transmit, const std::string& uploads,
                                  grpc::ClientContext& context, const std::function<void()>& awaited);
  void Poll();

  const std::string authorization_;  // the header's value; empty: no header
  const std::string affinity_;
  std::atomic<bool> bound_ = false;
  const std::stop_token closed_;
  const MaybeCredentials credentials_;
  const absl::Status broken_;  // why no call is possible
  std::shared_ptr<grpc::Channel> channel_;
  grpc::GenericStub stub_;
  grpc::CompletionQueue queue_;
  std::once_flag thread_once_;
  std::thread thread_;  // started by the first CallAsync
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_RAW_CHANNEL_H_
