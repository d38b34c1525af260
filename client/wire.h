// Protobuf messages as gRPC slices, written and read by hand, so that array elements are never copied into or
// out of a generated `bytes` field (which costs two copies and an allocation of the payload's size).
#ifndef WARPLINE_CLIENT_WIRE_H_
#define WARPLINE_CLIENT_WIRE_H_

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace warpline::client {

// The most that one message may have. protobuf aborts the process at 2 GiB and gRPC 1.51 wraps silently at
// 4 GiB; 64 KiB is what the API reserves for everything but the elements.
inline constexpr std::size_t kMaxMessageBytes = (std::size_t{2} << 30) - (std::size_t{64} << 10);

// Memory that is sent in place. Without an owner it must stay until SendTracker::borrowed() is 0; with one,
// gRPC holds a share of it for as long as it needs the bytes.
struct Payload {
  const void* data = nullptr;
  std::size_t bytes = 0;
  std::shared_ptr<const void> owner;
};

// How much borrowed memory gRPC still refers to. Thread-safe.
class SendTracker {
 public:
  // Payloads without an owner that are not released yet.
  std::size_t borrowed() const { return borrowed_.load(std::memory_order_acquire); }
  void Borrow() { borrowed_.fetch_add(1, std::memory_order_relaxed); }
  void Release() { borrowed_.fetch_sub(1, std::memory_order_release); }

 private:
  std::atomic<std::size_t> borrowed_ = 0;
};

// A message ready to be sent; `tracker` is null if it borrows no memory. Only to be moved: a
// copy of the buffer shares the slices, and the payload is released when the last share is gone.
struct OutgoingMessage {
  OutgoingMessage(const grpc::ByteBuffer& buffer, std::shared_ptr<SendTracker> tracker)
      : buffer(buffer), tracker(std::move(tracker)) {}
  // Written out, as moving a grpc::ByteBuffer copies it.
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

enum class WireType : std::uint8_t {
  kVarint = 0,
  kFixed64 = 1,
  kBytes = 2,
  kStartGroup = 3,
  kEndGroup = 4,
  kFixed32 = 5
};

// Writes one message, field by field. Not thread-safe.
class MessageWriter {
 public:
  void AppendVarint(std::uint32_t field, std::uint64_t value);
  void AppendDouble(std::uint32_t field, double value);
  // A string, bytes, or encoded sub-message; copied.
  void AppendBytes(std::uint32_t field, std::string_view value);
  // A packed repeated int32 or int64; nothing if it is empty.
  void AppendPacked(std::uint32_t field, std::span<const std::int64_t> values);
  // Bytes left in place; small ones are copied, as a slice of their own would cost more.
  void AppendPayload(std::uint32_t field, const Payload& payload);
  // A sub-message that consists of `head` (encoded fields), then `payload` as its field `payload_field`.
  void AppendMessage(std::uint32_t field, std::string_view head, std::uint32_t payload_field,
                     const Payload& payload);
  // The start of a sub-message of `bytes` bytes: whatever is appended next.
  void BeginMessage(std::uint32_t field, std::size_t bytes);
  // How many bytes AppendMessage() appends.
  static std::size_t MessageSize(std::uint32_t field, std::string_view head, std::uint32_t payload_field,
                                 const Payload& payload);

  // Bytes of the message so far.
  std::size_t size() const { return flushed_bytes_ + head_.size(); }
  // Fields copied since the last payload: the whole message if there was none.
  const std::string& head() const { return head_; }
  // InvalidArgument if the message is larger than kMaxMessageBytes.
  absl::StatusOr<OutgoingMessage> Finish() &&;

 private:
  void AppendTag(std::uint32_t field, WireType type);
  void AppendRawVarint(std::uint64_t value);
  void FlushHead();

  std::string head_;
  std::vector<grpc::Slice> slices_;
  std::size_t flushed_bytes_ = 0;
  std::shared_ptr<SendTracker> tracker_;
};

// A range of bytes that lie scattered over slices: a cursor and a length. Copyable (a copy is a bookmark);
// the slices must outlive it.
class SliceReader {
 public:
  SliceReader() = default;
  explicit SliceReader(std::span<const grpc::Slice> slices);

  std::size_t remaining() const { return remaining_; }
  // False, with the position unspecified, if the bytes end first or the varint is longer than `max_bytes`.
  bool ReadVarint(std::uint64_t& value, int max_bytes = 10);
  // The next `bytes` as a reader of their own, and past them; nothing if there are fewer.
  std::optional<SliceReader> Take(std::size_t bytes);
  // Copies everything that remains; `destination` has room for remaining() bytes.
  void CopyTo(void* destination) const;
  void AppendTo(std::string& destination) const;

 private:
  template <typename Visitor>
  void Walk(std::size_t bytes, Visitor visit);

  std::span<const grpc::Slice> slices_;  // the current slice, and those after it
  std::size_t offset_ = 0;               // in the current slice
  std::size_t remaining_ = 0;
};

struct Field {
  std::uint32_t number = 0;
  WireType type = WireType::kVarint;
  std::uint64_t varint = 0;  // kVarint only
  SliceReader contents;      // kBytes only: without tag and length
  SliceReader raw;           // tag and all
};

// Reads the next field of `message`; false at its end. InvalidArgument for what protobuf would not parse.
absl::StatusOr<bool> NextField(SliceReader& message, Field& field);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_WIRE_H_
