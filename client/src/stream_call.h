// One streaming call on slices.
#ifndef WARPLINE_CLIENT_SRC_STREAM_CALL_H_
#define WARPLINE_CLIENT_SRC_STREAM_CALL_H_

#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/src/message_writer.h"
#include "client/src/raw_channel.h"

namespace warpline::client {

// Every step blocks the calling thread, which polls the call's own queue. All functions except Cancel must be
// called from one thread.
class StreamCall {
 public:
  // Begins the call. The deadline is absolute. The channel must outlive this.
  StreamCall(RawChannel& channel, const std::string& method, absl::Time deadline,
             const std::string& request_id);
  // Cancels the call if Finish was not called, and returns when borrowed payloads are released.
  ~StreamCall();
  StreamCall(const StreamCall&) = delete;
  StreamCall& operator=(const StreamCall&) = delete;

  // Waits until gRPC has accepted the message. gRPC does so once most of it fits into the flow-control
  // windows of the connection. So this process holds hardly more than one unsent message. `last`: no other
  // message follows. Returns false if the call is over; then Finish returns the reason.
  bool Write(OutgoingMessage message, bool last);
  // Returns false if there are no more messages, or the call is over.
  bool Read(grpc::ByteBuffer& message);
  // Returns how the call ended, with gRPC's codes and details (grpc_error.h). Waits for the server. No other
  // step may follow.
  absl::Status Finish();

  // Current and later steps end soon. May be called from any thread, while this exists.
  void Cancel() { context_->TryCancel(); }

 private:
  // Waits for the one pending operation; false if it failed.
  bool Await();

  // In the order that destruction requires.
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::ClientContext> context_;
  std::optional<std::stop_callback<std::function<void()>>> on_close_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
  std::vector<std::shared_ptr<SendTracker>> trackers_;  // of messages that may still be borrowed
  bool began_ = false;
  bool finished_ = false;
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_STREAM_CALL_H_
