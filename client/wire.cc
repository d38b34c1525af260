#include "client/wire.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace warpline::client {
namespace {

static_assert(std::endian::native == std::endian::little);

// A slice costs an allocation, a reference count and an entry of sendmsg's vector; copying a few bytes costs
// none.
constexpr std::size_t kCopyBelowBytes = 4096;

// The bounds of protobuf's parser: of a tag it keeps the low 32 bits, a length near INT_MAX it refuses.
constexpr int kMaxTagBytes = 5;
constexpr int kMaxLengthBytes = 5;
constexpr std::uint64_t kMaxLength = std::numeric_limits<int>::max() - 16;
constexpr int kMaxGroupDepth = 100;

// What is to be done when gRPC lets go of a slice over foreign memory.
struct Hold {
  std::shared_ptr<const void> owner;
  std::shared_ptr<SendTracker> tracker;  // null if there is an owner
  // gRPC orders making and releasing already; this is for the thread sanitizer, which does not see into it.
  std::atomic<bool> made = false;
};

void ReleaseHold(void* user_data) {
  const std::unique_ptr<Hold> hold(static_cast<Hold*>(user_data));
  (void)hold->made.load(std::memory_order_acquire);
  if (hold->tracker != nullptr) hold->tracker->Release();
}

std::size_t VarintSize(std::uint64_t value) { return (std::bit_width(value | 1) + 6) / 7; }

std::uint32_t Tag(std::uint32_t field, WireType type) {
  return field << 3 | static_cast<std::uint32_t>(type);
}

// Of a field of this many bytes: with tag and length.
std::size_t BytesFieldSize(std::uint32_t field, std::size_t bytes) {
  return VarintSize(Tag(field, WireType::kBytes)) + VarintSize(bytes) + bytes;
}

absl::Status Malformed(std::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("malformed protobuf message: ", std::string(what)));
}

// False if there is none that protobuf would read.
bool ReadTag(SliceReader& message, std::uint32_t& number, WireType& type) {
  std::uint64_t wide = 0;
  if (!message.ReadVarint(wide, kMaxTagBytes)) return false;
  const auto tag = static_cast<std::uint32_t>(wide);
  number = tag >> 3;
  type = static_cast<WireType>(tag & 7);
  return number != 0;
}

// A length, and the bytes that it promises; nothing if they are not there.
std::optional<SliceReader> TakeBytes(SliceReader& message) {
  std::uint64_t length = 0;
  if (!message.ReadVarint(length, kMaxLengthBytes) || length > kMaxLength) return std::nullopt;
  return message.Take(length);
}

// Past one value of the given type, the tag having been read. Returns false if the bytes end first.
bool SkipValue(SliceReader& message, std::uint32_t number, WireType type, int depth) {
  std::uint64_t value = 0;
  switch (type) {
    case WireType::kVarint:
      return message.ReadVarint(value);
    case WireType::kFixed64:
      return message.Take(8).has_value();
    case WireType::kFixed32:
      return message.Take(4).has_value();
    case WireType::kBytes:
      return TakeBytes(message).has_value();
    case WireType::kStartGroup: {
      if (depth == 0) return false;
      std::uint32_t inner_number = 0;
      WireType inner = WireType::kVarint;
      while (ReadTag(message, inner_number, inner)) {
        if (inner == WireType::kEndGroup) return inner_number == number;
        if (!SkipValue(message, inner_number, inner, depth - 1)) return false;
      }
      return false;
    }
    case WireType::kEndGroup:
      return false;
  }
  return false;  // types 6 and 7 do not exist
}

}  // namespace

void MessageWriter::AppendRawVarint(std::uint64_t value) {
  while (value >= 0x80) {
    head_.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  head_.push_back(static_cast<char>(value));
}

void MessageWriter::AppendTag(std::uint32_t field, WireType type) { AppendRawVarint(Tag(field, type)); }

void MessageWriter::AppendVarint(std::uint32_t field, std::uint64_t value) {
  AppendTag(field, WireType::kVarint);
  AppendRawVarint(value);
}

void MessageWriter::AppendDouble(std::uint32_t field, double value) {
  AppendTag(field, WireType::kFixed64);
  char bytes[sizeof(value)];
  std::memcpy(bytes, &value, sizeof(value));
  head_.append(bytes, sizeof(value));
}

void MessageWriter::AppendBytes(std::uint32_t field, std::string_view value) {
  AppendTag(field, WireType::kBytes);
  AppendRawVarint(value.size());
  head_.append(value);
}

void MessageWriter::AppendPacked(std::uint32_t field, std::span<const std::int64_t> values) {
  if (values.empty()) return;
  std::size_t bytes = 0;
  for (std::int64_t value : values) bytes += VarintSize(static_cast<std::uint64_t>(value));
  AppendTag(field, WireType::kBytes);
  AppendRawVarint(bytes);
  for (std::int64_t value : values) AppendRawVarint(static_cast<std::uint64_t>(value));
}

void MessageWriter::AppendPayload(std::uint32_t field, const Payload& payload) {
  AppendTag(field, WireType::kBytes);
  AppendRawVarint(payload.bytes);
  if (payload.bytes < kCopyBelowBytes) {
    if (payload.bytes > 0) head_.append(static_cast<const char*>(payload.data), payload.bytes);
    return;
  }
  FlushHead();
  flushed_bytes_ += payload.bytes;
  auto hold = std::make_unique<Hold>();
  hold->owner = payload.owner;
  if (payload.owner == nullptr) {
    if (tracker_ == nullptr) tracker_ = std::make_shared<SendTracker>();
    tracker_->Borrow();
    hold->tracker = tracker_;
  }
  hold->made.store(true, std::memory_order_release);
  // gRPC never writes through a slice: its type only lacks the const.
  slices_.emplace_back(const_cast<void*>(payload.data), payload.bytes, ReleaseHold, hold.release());
}

void MessageWriter::AppendMessage(std::uint32_t field, std::string_view head, std::uint32_t payload_field,
                                  const Payload& payload) {
  BeginMessage(field, head.size() + BytesFieldSize(payload_field, payload.bytes));
  head_.append(head);
  AppendPayload(payload_field, payload);
}

void MessageWriter::BeginMessage(std::uint32_t field, std::size_t bytes) {
  AppendTag(field, WireType::kBytes);
  AppendRawVarint(bytes);
}

std::size_t MessageWriter::MessageSize(std::uint32_t field, std::string_view head,
                                       std::uint32_t payload_field, const Payload& payload) {
  return BytesFieldSize(field, head.size() + BytesFieldSize(payload_field, payload.bytes));
}

void MessageWriter::FlushHead() {
  if (head_.empty()) return;
  flushed_bytes_ += head_.size();
  slices_.emplace_back(head_);
  head_.clear();
}

absl::StatusOr<OutgoingMessage> MessageWriter::Finish() && {
  if (size() > kMaxMessageBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the request has ", size(), " bytes; one message can have at most ", kMaxMessageBytes));
  }
  FlushHead();
  // No slices is an empty message; a ByteBuffer without slices would be an invalid one.
  if (slices_.empty()) slices_.emplace_back();
  const std::vector<grpc::Slice> slices = std::exchange(slices_, {});  // the message's share is the only one
  return OutgoingMessage{grpc::ByteBuffer(slices.data(), slices.size()), std::move(tracker_)};
}

SliceReader::SliceReader(std::span<const grpc::Slice> slices) : slices_(slices) {
  for (const grpc::Slice& slice : slices) remaining_ += slice.size();
}

// Visits the next `bytes` (at most remaining()), piece by piece, and moves past them.
template <typename Visitor>
void SliceReader::Walk(std::size_t bytes, Visitor visit) {
  remaining_ -= bytes;
  while (bytes > 0) {
    const grpc::Slice& slice = slices_.front();
    const std::size_t here = std::min(bytes, slice.size() - offset_);
    visit(slice.begin() + offset_, here);
    bytes -= here;
    offset_ += here;
    if (offset_ == slice.size()) {
      slices_ = slices_.subspan(1);
      offset_ = 0;
    }
  }
}

bool SliceReader::ReadVarint(std::uint64_t& value, int max_bytes) {
  value = 0;
  for (int shift = 0; shift < 7 * max_bytes; shift += 7) {
    if (remaining_ == 0) return false;
    std::uint8_t byte = 0;
    Walk(1, [&](const std::uint8_t* data, std::size_t) { byte = *data; });
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

std::optional<SliceReader> SliceReader::Take(std::size_t bytes) {
  if (bytes > remaining_) return std::nullopt;
  SliceReader taken = *this;
  taken.remaining_ = bytes;
  Walk(bytes, [](const std::uint8_t*, std::size_t) {});
  return taken;
}

void SliceReader::CopyTo(void* destination) const {
  auto* out = static_cast<std::uint8_t*>(destination);
  SliceReader copy = *this;
  copy.Walk(remaining_, [&](const std::uint8_t* data, std::size_t size) {
    if (size > 0) std::memcpy(out, data, size);
    out += size;
  });
}

void SliceReader::AppendTo(std::string& destination) const {
  SliceReader copy = *this;
  copy.Walk(remaining_, [&](const std::uint8_t* data, std::size_t size) {
    destination.append(reinterpret_cast<const char*>(data), size);
  });
}

absl::StatusOr<bool> NextField(SliceReader& message, Field& field) {
  if (message.remaining() == 0) return false;
  const SliceReader start = message;
  if (!ReadTag(message, field.number, field.type)) return Malformed("truncated or invalid tag");
  const SliceReader value = message;
  if (!SkipValue(message, field.number, field.type, kMaxGroupDepth)) {
    return Malformed(absl::StrCat("truncated or invalid field ", field.number));
  }
  SliceReader reread = value;
  if (field.type == WireType::kVarint) {
    reread.ReadVarint(field.varint);
  } else if (field.type == WireType::kBytes) {
    field.contents = *TakeBytes(reread);
  }
  SliceReader whole = start;
  field.raw = *whole.Take(start.remaining() - message.remaining());
  return true;
}

}  // namespace warpline::client
