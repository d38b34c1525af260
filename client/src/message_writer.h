// Builds protobuf messages by hand, as gRPC slices. So array elements are never copied into a generated
// `bytes` field, which would cost two copies and an allocation of the payload's size.
#ifndef WARPLINE_CLIENT_SRC_MESSAGE_WRITER_H_
#define WARPLINE_CLIENT_SRC_MESSAGE_WRITER_H_

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/wire/scanner.h"

namespace warpline::client {

// The maximum size of one message. Beyond 2 GiB protobuf aborts the process, and beyond 4 GiB gRPC 1.51
// silently sends the wrong length. The API reserves 1 MiB for everything but the elements.
inline constexpr std::size_t kMaxMessageBytes = (std::size_t{2} << 30) - kMaxHeaderBytes;

// Memory that is sent in place. Without an owner, it must stay valid until SendTracker::borrowed() is 0. With
// an owner, gRPC shares ownership for as long as it needs the bytes.
struct Payload {
  const void* data = nullptr;
  std::size_t bytes = 0;
  std::shared_ptr<const void> owner;
};

// Counts the borrowed memory that gRPC still refers to. Thread-safe.
class SendTracker {
 public:
  // The number of payloads without an owner that are not released yet.
  std::size_t borrowed() const { return borrowed_.load(std::memory_order_acquire); }
  void Borrow() { borrowed_.fetch_add(1, std::memory_order_relaxed); }
  void Release() { borrowed_.fetch_sub(1, std::memory_order_release); }

 private:
  std::atomic<std::size_t> borrowed_ = 0;
};

// A message that is ready to send. `tracker` is null if the message borrows no memory. It is move-only: a
// copy of the buffer would share the slices, and the payload is released when the last copy is gone.
struct OutgoingMessage {
  OutgoingMessage(const grpc::ByteBuffer& buffer, std::shared_ptr<SendTracker> tracker)
      : buffer(buffer), tracker(std::move(tracker)) {}
  // The move operations are written out because moving a grpc::ByteBuffer copies it.
  OutgoingMessage(OutgoingMessage&& other) noexcept : tracker(std::move(other.tracker)) {
    buffer.Swap(&other.buffer);
  }
  OutgoingMessage& operator=(OutgoingMessage&& other) noexcept {
    buffer.Swap(&other.buffer);
    tracker.swap(other.tracker);
    return *this;
  }

  grpc::ByteBuffer buffer;
  std::shared_ptr<SendTracker> tracker;
};

// Puts one message together. Not thread-safe.
class MessageWriter {
 public:
  // Appends encoded fields, or the beginning of one. The bytes are copied.
  void Append(std::string_view encoded);
  // Appends the content of a field whose head (proto/wire/tensor_field.h) was appended last. The bytes are
  // not copied, except small ones: a separate slice would cost more.
  void AppendPayload(const Payload& payload);

  // Bytes of the message so far.
  std::size_t size() const { return flushed_bytes_ + copied_.size(); }
  // ResourceExhausted if the message is larger than kMaxMessageBytes.
  absl::StatusOr<OutgoingMessage> Finish() &&;

 private:
  void Flush();

  std::string copied_;  // bytes since the last slice
  std::vector<grpc::Slice> slices_;
  std::size_t flushed_bytes_ = 0;
  std::shared_ptr<SendTracker> tracker_;
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_MESSAGE_WRITER_H_
