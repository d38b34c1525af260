#include "client/src/message_writer.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace warpline::client {
namespace {

// A slice costs an allocation, a reference count and an entry of sendmsg's vector. Copying fewer bytes than
// this is cheaper.
constexpr std::size_t kCopyBelowBytes = 4096;

// The state that is released when gRPC lets go of a slice over foreign memory.
struct Hold {
  std::shared_ptr<const void> owner;
  std::shared_ptr<SendTracker> tracker;  // null if there is an owner
  // gRPC already orders construction and release. This flag is for the thread sanitizer, which does not see
  // into gRPC.
  std::atomic<bool> made = false;
};

void ReleaseHold(void* user_data) {
  const std::unique_ptr<Hold> hold(static_cast<Hold*>(user_data));
  (void)hold->made.load(std::memory_order_acquire);
  if (hold->tracker != nullptr) hold->tracker->Release();
}

}  // namespace

void MessageWriter::Append(std::string_view encoded) { copied_.append(encoded); }

void MessageWriter::AppendPayload(const Payload& payload) {
  if (payload.bytes < kCopyBelowBytes) {
    if (payload.bytes > 0) copied_.append(static_cast<const char*>(payload.data), payload.bytes);
    return;
  }
  Flush();
  flushed_bytes_ += payload.bytes;
  auto hold = std::make_unique<Hold>();
  hold->owner = payload.owner;
  if (payload.owner == nullptr) {
    if (tracker_ == nullptr) tracker_ = std::make_shared<SendTracker>();
    tracker_->Borrow();
    hold->tracker = tracker_;
  }
  hold->made.store(true, std::memory_order_release);
  // gRPC never writes through a slice; its type merely lacks the const.
  slices_.emplace_back(const_cast<void*>(payload.data), payload.bytes, ReleaseHold, hold.release());
}

void MessageWriter::Flush() {
  if (copied_.empty()) return;
  flushed_bytes_ += copied_.size();
  slices_.emplace_back(copied_);
  copied_.clear();
}

absl::StatusOr<OutgoingMessage> MessageWriter::Finish() && {
  if (size() > kMaxMessageBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the request has ", size(), " bytes; one message can have at most ", kMaxMessageBytes));
  }
  Flush();
  // A message without slices is empty, whereas a ByteBuffer without slices would be invalid.
  if (slices_.empty()) slices_.emplace_back();
  const std::vector<grpc::Slice> slices = std::exchange(slices_, {});  // leaves the message as the only owner
  return OutgoingMessage{grpc::ByteBuffer(slices.data(), slices.size()), std::move(tracker_)};
}

}  // namespace warpline::client
