// Unary calls on slices: connections, deadlines, the release of borrowed memory, and nothing about arrays.
#ifndef WARPLINE_CLIENT_RAW_CHANNEL_H_
#define WARPLINE_CLIENT_RAW_CHANNEL_H_

#include <grpcpp/channel.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/message_writer.h"

namespace warpline::client {

// gRPC 1.51 tells of a unary call that the response's headers are here, and that the call is over: not how
// much of the request is sent, nor how much of the response has come. Cutting the request into small slices
// does not help: whatever their size, and with gRPC's retries off too, it was seen to release all of them
// when the call was over, and none before.
enum class Phase {
  kSending,    // sending or computing; `bytes` of the request
  kReceiving,  // headers are here, the message is arriving; `bytes` is 0
  kCopying,    // `bytes` of the response are on their way to their destination
};

struct Progress {
  Phase phase = Phase::kSending;
  std::size_t bytes = 0;
  absl::Duration elapsed{};
};

// Called a few times a second, on the thread of the call. Cheap, and calls nothing of this library.
using ProgressHook = std::function<void(const Progress&)>;

struct ChannelOptions {
  // A connection of its own, even if the process has another channel to the same target.
  bool own_connection = false;
};

// Thread-safe.
class RawChannel {
 public:
  using Done = std::function<void(absl::StatusOr<grpc::ByteBuffer>)>;

  // Connects at the first call. Target: "host:port", "unix:/path", or anything else gRPC resolves.
  RawChannel(const std::string& target, const ChannelOptions& options);
  // Waits for the calls in flight; their callbacks must not start new ones.
  ~RawChannel();

  RawChannel(const RawChannel&) = delete;
  RawChannel& operator=(const RawChannel&) = delete;

  // The deadline is absolute. Returns when the call is over and borrowed payloads are released. `request_id`
  // may be empty. Errors are gRPC's, with details (error.h).
  absl::StatusOr<grpc::ByteBuffer> Call(const std::string& method, OutgoingMessage message,
                                        absl::Time deadline, const std::string& request_id,
                                        const ProgressHook& progress);

  // The same without waiting: `done` runs on this channel's thread, so the next response waits for it. It
  // may start calls.
  void CallAsync(const std::string& method, OutgoingMessage message, absl::Time deadline,
                 const std::string& request_id, Done done);

 private:
  struct AsyncCall;
  struct FinishedCall;
  void Poll();

  std::shared_ptr<grpc::Channel> channel_;
  grpc::GenericStub stub_;
  grpc::CompletionQueue queue_;
  std::once_flag thread_once_;
  std::thread thread_;  // started by the first CallAsync
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_RAW_CHANNEL_H_
