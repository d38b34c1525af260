#include "proto/wire/scanner.h"

#include <algorithm>
#include <bit>
#include <climits>
#include <cstring>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/wire_format_lite.h"
#include "kernels/field_error.h"
#include "kernels/status_macros.h"
#include "proto/wire/utf8.h"

namespace warpline {
namespace {

// The limits of protobuf 3.21's parser. It keeps only the low 32 bits of a tag. A length close to INT_MAX
// would overflow the parser's own arithmetic, so it refuses the last 16 values.
constexpr int kTagBytesMax = 5;
constexpr int kLengthBytesMax = 5;
constexpr int kVarintBytesMax = 10;
constexpr std::uint64_t kLengthMax = INT_MAX - 16;
constexpr std::size_t kNestingMax = 100;

// Initial sizes with room for most headers and lists of payloads, so that they do not grow step by step.
constexpr std::size_t kUsualHeaderBytes = 256;
constexpr std::size_t kUsualPayloads = 4;

// The length of a rewritten message is known only at its end. So its place gets a varint of fixed size,
// padded with continuation bytes, which parsers accept. The value is filled in at the end.
constexpr std::size_t kPaddedLengthBytes = 5;

using google::protobuf::internal::WireFormatLite;

static_assert(std::endian::native == std::endian::little);  // doubles are little-endian on the wire

// A position in the slices. It is always at a byte, or past the last one.
class Cursor {
 public:
  explicit Cursor(Slices slices) : slices_(slices) {
    for (const auto& slice : slices) total_ += slice.size();
    Normalise();
  }

  std::size_t total() const { return total_; }
  std::size_t position() const { return position_; }
  PayloadRange Range(std::size_t length) const { return {slice_, offset_, length}; }
  // The rest of the current slice; empty at the end.
  std::span<const std::byte> Rest() const {
    return slice_ < slices_.size() ? slices_[slice_].subspan(offset_) : std::span<const std::byte>();
  }
  // Moves past the next `size` bytes of Rest().
  void Skip(std::size_t size) {
    position_ += size;
    offset_ += size;
    Normalise();
  }

  // Passes the next `size` bytes, which must exist, to `visit` piece by piece, and moves past them.
  template <typename Visit>
  void Take(std::size_t size, Visit&& visit) {
    while (size > 0) {
      const std::span<const std::byte> rest = Rest();
      const std::span<const std::byte> piece = rest.first(std::min(size, rest.size()));
      visit(piece);
      size -= piece.size();
      Skip(piece.size());
    }
  }

 private:
  void Normalise() {
    while (slice_ < slices_.size() && offset_ == slices_[slice_].size()) ++slice_, offset_ = 0;
  }

  Slices slices_;
  std::size_t slice_ = 0;
  std::size_t offset_ = 0;
  std::size_t position_ = 0;
  std::size_t total_ = 0;
};

class Scanner {
 public:
  Scanner(const ScanSchema& schema, Slices slices, const ScanLimits& limits)
      : schema_(schema), limits_(limits), cursor_(slices) {}

  absl::StatusOr<ScannedMessage> Run() {
    header().reserve(std::min(cursor_.total(), kUsualHeaderBytes));
    innermost_ = {.message = ScanSchema::kRoot, .end = cursor_.total()};
    while (true) {
      while (Remaining() == 0) {
        if (innermost_.group != 0) return Malformed("a group without its end");
        if (outer_.empty()) return std::move(scanned_);
        CloseMessage();
      }
      RETURN_IF_ERROR(ScanField());
    }
  }

 private:
  // An open message, or an open group. Groups are always unknown fields: no message of the API has one.
  struct Frame {
    std::optional<int> message = std::nullopt;  // index in the schema; nothing for a group
    std::size_t end = 0;                        // position after the innermost length-delimited message
    std::size_t length_at = 0;  // of a nested message: where its length is filled in, in the header
    std::uint32_t group = 0;    // field number; 0 for a message
  };

  std::size_t Remaining() const { return innermost_.end - cursor_.position(); }
  std::string& header() { return scanned_.header; }

  absl::Status Malformed(const char* what) const {
    return absl::InvalidArgumentError(
        absl::StrCat("malformed message: ", what, " at byte ", cursor_.position(), " of ", cursor_.total()));
  }

  absl::Status Append(const char* data, std::size_t size) {
    RETURN_IF_ERROR(CheckHeaderRoom(size));
    header().append(data, size);
    return absl::OkStatus();
  }

  absl::Status CheckHeaderRoom(std::size_t more) const {
    const std::size_t needed = scanned_.header.size() + reference_bytes_ + more;
    if (needed <= limits_.header_bytes) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("the message without its tensor contents takes ", needed,
                                                   " bytes or more; the limit is ", limits_.header_bytes));
  }

  // Copies the next `size` bytes into the header.
  absl::Status Copy(std::size_t size) {
    if (size > Remaining()) return Malformed("a field longer than its message");
    RETURN_IF_ERROR(CheckHeaderRoom(size));
    cursor_.Take(size, [this](std::span<const std::byte> piece) {
      header().append(reinterpret_cast<const char*>(piece.data()), piece.size());
    });
    return absl::OkStatus();
  }

  // Copies a varint into the header and returns its value, modulo 2^64.
  absl::StatusOr<std::uint64_t> CopyVarint(int bytes_max) {
    // Most varints have only one byte.
    const std::span<const std::byte> rest = cursor_.Rest();
    if (Remaining() > 0 && rest.front() < std::byte{0x80} && header().size() < limits_.header_bytes) {
      header().push_back(static_cast<char>(rest.front()));
      cursor_.Skip(1);
      return static_cast<std::uint64_t>(static_cast<unsigned char>(header().back()));
    }
    std::uint64_t value = 0;
    for (int i = 0; i < bytes_max; ++i) {
      RETURN_IF_ERROR(Copy(1));
      const auto byte = static_cast<unsigned char>(header().back());
      value |= static_cast<std::uint64_t>(byte & 0x7f) << (7 * i);
      if (byte < 0x80) return value;
    }
    return Malformed("a varint with too many bytes");
  }

  absl::Status ScanField() {
    field_at_ = header().size();
    ASSIGN_OR_RETURN(const std::uint64_t wide_tag, CopyVarint(kTagBytesMax));
    const auto tag = static_cast<std::uint32_t>(wide_tag);
    const auto number = static_cast<std::uint32_t>(WireFormatLite::GetTagFieldNumber(tag));
    if (number == 0) return Malformed("field number 0");
    switch (static_cast<int>(WireFormatLite::GetTagWireType(tag))) {
      case WireFormatLite::WIRETYPE_VARINT:
        return ScanVarint(number);
      case WireFormatLite::WIRETYPE_FIXED64:
        return ScanFixed64(number);
      case WireFormatLite::WIRETYPE_FIXED32:
        return Copy(4);
      case WireFormatLite::WIRETYPE_LENGTH_DELIMITED:
        return ScanLengthDelimited(number);
      case WireFormatLite::WIRETYPE_START_GROUP:
        return Open({.end = innermost_.end, .group = number});
      case WireFormatLite::WIRETYPE_END_GROUP:
        if (innermost_.group != number) return Malformed("the end of a group that is not open");
        Close();
        return absl::OkStatus();
      default:
        return Malformed("an undefined wire type");
    }
  }

  // Returns the content of the field with this number in the innermost message.
  std::optional<int> ContentOf(std::uint32_t number) const {
    const std::optional<int> message = innermost_.message;
    return message ? schema_.Find(*message, number) : std::nullopt;
  }

  absl::Status ScanVarint(std::uint32_t number) {
    const std::size_t at = header().size();
    ASSIGN_OR_RETURN(const std::uint64_t value, CopyVarint(kVarintBytesMax));
    if (ContentOf(number) != ScanSchema::kInteger) return absl::OkStatus();
    header().resize(at);
    auto token = static_cast<std::uint64_t>(IntegerToken(scanned_.integers.size()));
    scanned_.integers.push_back(static_cast<std::int64_t>(value));
    RETURN_IF_ERROR(CheckHeaderRoom(kVarintBytesMax));
    for (; token >= 0x80; token >>= 7) header().push_back(static_cast<char>((token & 0x7f) | 0x80));
    header().push_back(static_cast<char>(token));
    return absl::OkStatus();
  }

  absl::Status ScanFixed64(std::uint32_t number) {
    const std::size_t at = header().size();
    RETURN_IF_ERROR(Copy(sizeof(double)));
    if (ContentOf(number) != ScanSchema::kScalar) return absl::OkStatus();
    const double token = ScalarToken(scanned_.scalars.size());
    std::memcpy(&scanned_.scalars.emplace_back(), header().data() + at, sizeof(double));
    std::memcpy(header().data() + at, &token, sizeof(double));
    return absl::OkStatus();
  }

  absl::Status ScanLengthDelimited(std::uint32_t number) {
    const std::size_t length_at = header().size();
    ASSIGN_OR_RETURN(const std::uint64_t length, CopyVarint(kLengthBytesMax));
    if (length > kLengthMax || length > Remaining()) return Malformed("a field longer than its message");
    const std::optional<int> content = ContentOf(number);
    const bool is_number = content == ScanSchema::kScalar || content == ScanSchema::kInteger;
    if (!content.has_value() || is_number) return Copy(length);

    if (*content == ScanSchema::kExtra) return TakeExtra(length);
    header().resize(length_at);  // another length replaces it
    if (*content == ScanSchema::kPayload) return TakePayload(length);
    if (*content <= ScanSchema::kReference) return TakeReference(ScanSchema::kReference - *content, length);
    const char padding[kPaddedLengthBytes] = {};
    RETURN_IF_ERROR(Append(padding, sizeof padding));
    return Open({.message = content, .end = cursor_.position() + length, .length_at = length_at});
  }

  absl::Status TakePayload(std::size_t length) {
    const std::size_t index = scanned_.payloads.size();
    if (index >= limits_.payloads) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the message has ", index + 1, " tensor contents or more; the limit is ", limits_.payloads));
    }
    if (index == 0) scanned_.payloads.reserve(kUsualPayloads);
    const std::string token = PayloadToken(index);
    RETURN_IF_ERROR(Append("\x04", 1));  // kTokenBytes as a varint
    RETURN_IF_ERROR(Append(token.data(), token.size()));
    scanned_.payloads.push_back(cursor_.Range(length));
    cursor_.Take(length, [](std::span<const std::byte>) {});
    return absl::OkStatus();
  }

  absl::Status TakeExtra(std::size_t length) {
    if (scanned_.extras.size() >= limits_.extras) {
      return FieldError(schema_.extra_path(),
                        absl::StrCat(scanned_.extras.size() + 1, " or more; the limit is ", limits_.extras));
    }
    header().resize(field_at_);
    return TakeText(length, scanned_.extras.emplace_back());
  }

  // Moves a string out of the message. It counts against the header limit as if it were still there.
  absl::Status TakeText(std::size_t length, std::string& text) {
    RETURN_IF_ERROR(CheckHeaderRoom(length));
    reference_bytes_ += length;
    cursor_.Take(length, [&](std::span<const std::byte> piece) {
      text.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    });
    // Check the encoding here, because the parser does not see this string.
    if (IsUtf8(text)) return absl::OkStatus();
    return Malformed("a string that is not UTF-8");
  }

  absl::Status TakeReference(int field, std::size_t length) {
    if (scanned_.references.size() >= limits_.references) {
      return absl::InvalidArgumentError(absl::StrCat("the message has ", scanned_.references.size() + 1,
                                                     " references or more; the limit is ",
                                                     limits_.references));
    }
    const std::string token = ReferenceToken(scanned_.references.size());
    scanned_.references.push_back({.field = field, .text = {}});
    RETURN_IF_ERROR(TakeText(length, scanned_.references.back().text));
    RETURN_IF_ERROR(Append("\x04", 1));  // kTokenBytes as a varint
    return Append(token.data(), token.size());
  }

  absl::Status Open(const Frame& frame) {
    if (outer_.size() >= kNestingMax) return Malformed("messages nested more than 100 deep");
    outer_.push_back(innermost_);
    innermost_ = frame;
    return absl::OkStatus();
  }

  void CloseMessage() {
    const std::size_t at = innermost_.length_at;
    std::size_t length = header().size() - at - kPaddedLengthBytes;
    for (std::size_t i = 0; i < kPaddedLengthBytes; ++i, length >>= 7) {
      const bool last = i + 1 == kPaddedLengthBytes;
      header()[at + i] = static_cast<char>((length & 0x7f) | (last ? 0 : 0x80));
    }
    Close();
  }

  void Close() {
    innermost_ = outer_.back();
    outer_.pop_back();
  }

  const ScanSchema& schema_;
  const ScanLimits limits_;
  Cursor cursor_;
  Frame innermost_;
  absl::InlinedVector<Frame, 8> outer_;  // the enclosing frames, the message itself first
  std::size_t field_at_ = 0;             // where the current field begins in the header
  std::size_t reference_bytes_ = 0;      // including extras
  ScannedMessage scanned_;
};

}  // namespace

absl::StatusOr<ScannedMessage> ScanMessage(const ScanSchema& schema, Slices slices,
                                           const ScanLimits& limits) {
  return Scanner(schema, slices, limits).Run();
}

}  // namespace warpline
