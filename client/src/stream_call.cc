#include "client/src/stream_call.h"

#include <chrono>
#include <utility>

#include "client/src/grpc_error.h"
#include "client/src/interrupt.h"

namespace warpline::client {

StreamCall::StreamCall(RawChannel& channel, const std::string& method, absl::Time deadline,
                       const std::string& request_id)
    : context_(channel.NewContext(deadline, request_id)),
      on_close_(std::in_place, channel.closed(), [context = context_.get()] { context->TryCancel(); }) {
  stream_ = channel.stub().PrepareCall(context_.get(), method, &queue_);
  stream_->StartCall(this);
  began_ = Await();
}

StreamCall::~StreamCall() {
  if (!finished_) {
    Cancel();
    (void)Finish();
  }
  // This releases the messages of a cancelled call.
  stream_ = nullptr;
  on_close_.reset();
  context_ = nullptr;
  void* tag = nullptr;
  bool ok = false;
  for (const std::shared_ptr<SendTracker>& tracker : trackers_) {
    // Keep polling, because the remaining bytes may be waiting for a socket.
    while (tracker->borrowed() > 0) {
      queue_.AsyncNext(&tag, &ok, std::chrono::system_clock::now() + kReleasePeriod);
    }
  }
  queue_.Shutdown();
  while (queue_.Next(&tag, &ok)) {
  }
}

bool StreamCall::Await() {
  void* tag = nullptr;
  bool ok = false;
  return AwaitEvent(queue_, *context_, &tag, &ok) && ok;
}

bool StreamCall::Write(OutgoingMessage message, bool last) {
  if (!began_) return false;
  std::erase_if(trackers_, [](const auto& tracker) { return tracker->borrowed() == 0; });
  if (message.tracker != nullptr) trackers_.push_back(message.tracker);
  grpc::WriteOptions options;
  if (last) options.set_last_message();
  stream_->Write(message.buffer, options, this);
  message.buffer.Clear();  // only gRPC's own references remain
  return Await();
}

bool StreamCall::Read(grpc::ByteBuffer& message) {
  if (!began_) return false;
  stream_->Read(&message, this);
  return Await();
}

absl::Status StreamCall::Finish() {
  grpc::Status status;
  stream_->Finish(&status, this);
  Await();
  finished_ = true;
  return ToAbslStatus(status, *context_);
}

}  // namespace warpline::client
