// Finds the payloads (contents of one `bytes` field, such as Tensor.inline) of a message in its wire bytes,
// so that they are copied once, from gRPC's slices to where they are needed, and never become a protobuf
// `bytes` field. Server and client both read messages through it.
//
// One pass over the slices makes a small copy of the message, the header, in which the content of every
// payload is replaced by a token. The generated parser then reads the header: merging of split messages,
// last-one-wins and oneof rules stay protobuf's own, and the field holds the token of the payload that won.
// Scanning and then parsing the header accepts exactly the bytes that parsing them directly accepts.
//
// The scanner reads tags and varints by itself: protobuf's CodedInputStream tells neither in which slice a
// payload begins nor the bytes of a varint that is longer than it needs to be, and the header keeps these as
// they are.
#ifndef WARPLINE_PROTO_WIRE_SCANNER_H_
#define WARPLINE_PROTO_WIRE_SCANNER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/wire/slices.h"

namespace google::protobuf {
class Descriptor;
class FieldDescriptor;
}  // namespace google::protobuf

namespace warpline {

// Which fields of a message type, and of the messages in it, are payloads or messages. Immutable: make one
// per type, at start.
class PayloadSchema {
 public:
  // `payload` is the field whose contents are payloads, wherever in the message it occurs.
  static PayloadSchema For(const google::protobuf::Descriptor* message,
                           const google::protobuf::FieldDescriptor* payload);

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
  // Whatever is not a payload is copied, unknown fields too. No valid request needs even a tenth of the
  // default. Unit: bytes; less than 2^31.
  std::size_t header_bytes = 64 * 1024;
  // Repeated singular fields count each time.
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

}  // namespace warpline

#endif  // WARPLINE_PROTO_WIRE_SCANNER_H_
