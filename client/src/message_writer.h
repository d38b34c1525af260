// Protobuf messages as gRPC slices that are put together by hand, so that array elements are never copied
// into a generated `bytes` field, which would cost two copies and an allocation of the payload's size.
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

// The most bytes that one message may have. Beyond 2 GiB protobuf aborts the process, and beyond 4 GiB
// gRPC 1.51 silently sends the wrong length. The API reserves 1 MiB for everything but the elements.
inline constexpr std::size_t kMaxMessageBytes = (std::size_t{2} << 30) - kMaxHeaderBytes;

// Memory that is sent in place. If it has no owner, it must stay until SendTracker::borrowed() is 0. If it
// has one, gRPC holds a share of the owner for as long as it needs the bytes.
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

// A message that is ready to be sent; `tracker` is null if it borrows no memory. It can only be moved: a copy
// of the buffer would share the slices, and the payload is released when the last share is gone.
struct OutgoingMessage {
  OutgoingMessage(const grpc::ByteBuffer& buffer, std::shared_ptr<SendTracker> tracker)
      : buffer(buffer), tracker(std::move(tracker)) {}
  // They are written out because moving a grpc::ByteBuffer copies it.
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
  // Encoded fields, or the beginning of one. They are copied.
  void Append(std::string_view encoded);
  // The content of a field whose head (proto/wire/tensor_field.h) was appended last. The bytes are left in
  // place; small ones are copied, as a slice of their own would cost more.
  void AppendPayload(const Payload& payload);

  // Bytes of the message so far.
  std::size_t size() const { return flushed_bytes_ + copied_.size(); }
  // ResourceExhausted if the message is larger than kMaxMessageBytes.
  absl::StatusOr<OutgoingMessage> Finish() &&;

 private:
  void Flush();

  std::string copied_;  // since the last slice
  std::vector<grpc::Slice> slices_;
  std::size_t flushed_bytes_ = 0;
  std::shared_ptr<SendTracker> tracker_;
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_MESSAGE_WRITER_H_
