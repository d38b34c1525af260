// Finds the payloads (Tensor.inline) of a request in its wire bytes, so that they are copied once, from
// gRPC's slices into staging memory, and never become a protobuf `bytes` field.
//
// One pass over the slices makes a small copy of the message, the header, in which the content of every
// payload is replaced by a token. The generated parser then reads the header: merging of split messages,
// last-one-wins and oneof rules stay protobuf's own, and Tensor.inline holds the token of the payload that
// won. Scanning and then parsing the header accepts exactly the bytes that parsing them directly accepts.
#ifndef WARPLINE_SERVER_RPC_CODEC_WIRE_SCANNER_H_
#define WARPLINE_SERVER_RPC_CODEC_WIRE_SCANNER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace google::protobuf {
class Descriptor;
}

namespace warpline {

// The message: its bytes in order, in pieces of any size, none included.
using Slices = std::span<const std::span<const std::byte>>;

// Where a payload lies: `length` bytes from slices[slice][offset] on, over as many slices as they take.
struct PayloadRange {
  std::size_t slice = 0;
  std::size_t offset = 0;
  std::size_t length = 0;

  friend bool operator==(const PayloadRange&, const PayloadRange&) = default;
};

// Which fields of a message type are payloads or messages. Immutable: make one per method, at start.
class PayloadSchema {
 public:
  static PayloadSchema For(const google::protobuf::Descriptor* message);

  static constexpr int kRoot = 0;
  static constexpr int kPayload = -1;

  // What field `number` of message type `message` holds when it is length-delimited: kPayload, or the index
  // of its message type, or nothing that the scanner looks into.
  std::optional<int> Find(int message, std::uint32_t number) const;

 private:
  struct Field {
    std::uint32_t number;
    int content;
  };
  std::vector<std::vector<Field>> messages_;  // the one asked for first, then those it reaches
};

struct ScanLimits {
  // Whatever is not a payload is copied, unknown fields too. No valid request needs even a tenth of this.
  // Unit: bytes; less than 2^31.
  std::size_t header_bytes = 64 * 1024;
  // Repeated singular fields count each time; programs of many inputs are to come.
  std::size_t payloads = 1024;
};

struct ScannedMessage {
  std::string header;
  std::vector<PayloadRange> payloads;  // by index in the token
};

// INVALID_ARGUMENT if the message is malformed or over a limit; then the text gives figure and limit.
// Takes time linear in the bytes outside of payloads and in the number of slices.
absl::StatusOr<ScannedMessage> ScanMessage(const PayloadSchema& schema, Slices slices,
                                           const ScanLimits& limits = {});

// The index into ScannedMessage::payloads that a token stands for. Nothing if it is no token.
std::optional<std::size_t> PayloadIndex(std::string_view token);
// What stands for the payload of that index in a header.
std::string PayloadToken(std::size_t index);

// Calls visit(std::span<const std::byte>) for the non-empty pieces of a payload, in order. `range` must have
// come from a scan of these slices.
template <typename Visit>
void ForEachPiece(Slices slices, const PayloadRange& range, Visit&& visit) {
  std::size_t slice = range.slice;
  std::size_t offset = range.offset;
  for (std::size_t left = range.length; left > 0; ++slice, offset = 0) {
    const std::size_t size = std::min(left, slices[slice].size() - offset);
    if (size > 0) visit(slices[slice].subspan(offset, size));
    left -= size;
  }
}

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_CODEC_WIRE_SCANNER_H_
