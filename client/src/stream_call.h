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

// Every step blocks the thread that makes it, which polls a queue of the call's own. All but Cancel is to be
// called from one thread.
class StreamCall {
 public:
  // Begins it. The deadline is absolute. The channel must stay until this is destroyed.
  StreamCall(RawChannel& channel, const std::string& method, absl::Time deadline,
             const std::string& request_id);
  // Ends it, if Finish was not called, and returns when borrowed payloads are released.
  ~StreamCall();
  StreamCall(const StreamCall&) = delete;
  StreamCall& operator=(const StreamCall&) = delete;

  // Waits until gRPC has taken the message in hand, which it does once most of it fits into the windows of
  // the connection: so hardly more than one is on its way in this process. `last`: there will be no other.
  // False if the call is over, and Finish tells why.
  bool Write(OutgoingMessage message, bool last);
  // False if there are no more, or the call is over.
  bool Read(grpc::ByteBuffer& message);
  // How the call ended, with gRPC's codes and details (grpc_error.h). Waits for the server. No other step may
  // follow.
  absl::Status Finish();

  // The steps that wait, and all that follow, end soon. From any thread, while this exists.
  void Cancel() { context_->TryCancel(); }

 private:
  // Waits for the one operation that was started; false if it failed.
  bool Await();

  // In the order that destruction needs.
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::ClientContext> context_;
  std::optional<std::stop_callback<std::function<void()>>> on_close_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
  std::vector<std::shared_ptr<SendTracker>> trackers_;  // of what may still be borrowed
  bool began_ = false;
  bool finished_ = false;
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_STREAM_CALL_H_
