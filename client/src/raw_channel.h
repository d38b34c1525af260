// Unary calls on slices: connections, deadlines, the release of borrowed memory, and nothing about arrays.
// Calls that stream are in stream_call.h.
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
// How often to look whether gRPC has let go of borrowed memory. Nearly always it has when a call ends; only
// a cancelled call may have bytes on their way into a socket.
inline constexpr std::chrono::milliseconds kReleasePeriod(1);

// Thread-safe.
class RawChannel {
 public:
  using Done = std::function<void(absl::StatusOr<grpc::ByteBuffer>)>;
  // Sends the uploads of a call. It is called before the server's answer, with its message Uploads as bytes.
  // `ended` says that the server has answered. An error ends the call, but for NotFound, after which the
  // server says itself why it has ended.
  using Transmit = std::function<absl::Status(const std::string& uploads, const std::stop_token& ended)>;

  // Connects at the first call. Target: "host:port", "unix:/path", or anything else gRPC resolves. If the
  // files of the options are no good, every call fails. `closed` ends calls, and those that come later, with
  // CANCELLED. `affinity`: see Bind.
  RawChannel(const std::string& target, const ChannelOptions& options, std::stop_token closed = {},
             std::string affinity = "");
  // With credentials that another channel has made, and a connection that is closed after `idle` without
  // calls.
  using MaybeCredentials = absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>>;
  RawChannel(const std::string& target, const ChannelOptions& options, MaybeCredentials credentials,
             std::stop_token closed, absl::Duration idle, std::string affinity);
  // Waits for the calls in flight; their callbacks must not start new ones.
  ~RawChannel();

  RawChannel(const RawChannel&) = delete;
  RawChannel& operator=(const RawChannel&) = delete;

  // The deadline is absolute. Returns when the call is over and borrowed payloads are released. `request_id`
  // may be empty. Errors are gRPC's, with details (grpc_error.h).
  absl::StatusOr<grpc::ByteBuffer> Call(const std::string& method, OutgoingMessage message,
                                        absl::Time deadline, const std::string& request_id,
                                        const Transmit& transmit = nullptr);

  // The same without waiting: `done` runs on this channel's thread, so the next response waits for it. It
  // may start calls. `stop` cancels the call.
  void CallAsync(const std::string& method, OutgoingMessage message, absl::Time deadline,
                 const std::string& request_id, Done done, const std::stop_token& stop = {});

  // From now on, calls say that they belong together, with others of the same affinity: a balancer then sends
  // all of them to one server, and a server counts all connections as one client.
  void Bind() { bound_ = true; }
  // Begins to connect, and does not wait.
  void BeginConnecting() { (void)channel_->GetState(/*try_to_connect=*/true); }

  // Waits for so long, between two attempts of a call, and has the channel connect meanwhile. Returns sooner
  // when it is closed or the thread is interrupted.
  void Pause(absl::Duration delay) const;

  const MaybeCredentials& credentials() const { return credentials_; }
  const std::stop_token& closed() const { return closed_; }
  grpc::GenericStub& stub() { return stub_; }
  // Returns the context of one call. `request_id` may be empty.
  std::unique_ptr<grpc::ClientContext> NewContext(absl::Time deadline, const std::string& request_id) const;

 private:
  struct AsyncCall;
  struct FinishedCall;
  // Has the uploads sent while `awaited` waits for the answer on another thread. Returns why the call was
  // cancelled; OK if it was not.
  static absl::Status SendUploads(const Transmit& transmit, const std::string& uploads,
                                  grpc::ClientContext& context, const std::function<void()>& awaited);
  void Poll();

  const std::string authorization_;  // the header; empty: none
  const std::string affinity_;
  std::atomic<bool> bound_ = false;
  const std::stop_token closed_;
  const MaybeCredentials credentials_;
  const absl::Status broken_;  // why there can be no call
  std::shared_ptr<grpc::Channel> channel_;
  grpc::GenericStub stub_;
  grpc::CompletionQueue queue_;
  std::once_flag thread_once_;
  std::thread thread_;  // started by the first CallAsync
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_RAW_CHANNEL_H_
