// Finds the payloads (contents of one `bytes` field, such as Tensor.inline) of a message in its wire bytes.
// So payloads are copied only once, from gRPC's slices to their destination, and never become a protobuf
// `bytes` field. Server and client both read messages in this way.
//
// One pass over the slices makes a small copy of the message, the header. In the header, a token replaces
// each payload. The generated parser then reads the header. So the rules for split messages, repeated fields
// (last one wins) and oneofs remain protobuf's own, and the field holds the token of the payload that counts.
// Scanning and then parsing the header accepts exactly the same bytes as parsing the message directly, within
// the limits.
//
// Tokens also replace scalars and integers (fields of type double and int64 that the schema names) and
// references (string fields that it names, such as ids). So messages that differ only in these values and in
// payloads have the same header. Extras (repeated string fields that the schema names) are removed from the
// message. So the header does not depend on their number either.
//
// The scanner reads tags and varints itself. protobuf's CodedInputStream reports neither the slice in which a
// payload begins nor the bytes of a varint that is longer than necessary. The header keeps such bytes
// unchanged.
#ifndef WARPLINE_PROTO_WIRE_SCANNER_H_
#define WARPLINE_PROTO_WIRE_SCANNER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "proto/wire/slices.h"

namespace google::protobuf {
class Descriptor;
class FieldDescriptor;
}  // namespace google::protobuf

namespace warpline {

// Defines which fields of a message type, and of its nested messages, are payloads, scalars, integers,
// references, extras or messages. Immutable: make one schema per type, at start.
class ScanSchema {
 public:
  using Field = google::protobuf::FieldDescriptor;
  // These fields are found wherever they occur in the message.
  struct Fields {
    const Field* payload = nullptr;        // the contents are payloads
    std::vector<const Field*> scalars;     // of type double
    std::vector<const Field*> integers;    // of type int64
    std::vector<const Field*> references;  // of type string
    const Field* extra = nullptr;          // of type string, and repeated
    std::string extra_path{};              // path of `extra` in the message, for errors
  };
  static ScanSchema For(const google::protobuf::Descriptor* message, const Fields& fields);

  static constexpr int kRoot = 0;
  static constexpr int kPayload = -1;
  static constexpr int kScalar = -2;
  static constexpr int kInteger = -3;
  static constexpr int kExtra = -4;
  // References have this value or lower: kReference minus the index in Fields::references.
  static constexpr int kReference = -5;

  // Returns the content of field `number` of message type `message`, if the field has its declared wire type:
  // kPayload, kScalar, kInteger, kExtra, kReference or lower, or the index of its message type. Returns
  // nothing if the scanner does not look into the field.
  std::optional<int> Find(int message, std::uint32_t number) const;
  const std::string& extra_path() const { return extra_path_; }

 private:
  struct Known {
    std::uint32_t number;
    int content;
  };
  std::vector<std::vector<Known>> messages_;  // the root message first, then those that it contains
  std::string extra_path_;
};

// The API's limit for RequestOptions.free_after.
inline constexpr std::size_t kMaxFreeAfter = 256;

// The API's limit for everything but the elements of a request, in bytes.
inline constexpr std::size_t kMaxHeaderBytes = std::size_t{1} << 20;

struct ScanLimits {
  // Maximum size of the header, in bytes; must be less than 2^31. Everything but payloads counts, including
  // unknown fields, references and extras. The default has room for a program of 256 steps with maps of 256
  // nodes.
  std::size_t header_bytes = kMaxHeaderBytes;
  // Each occurrence of a repeated singular field counts.
  std::size_t payloads = 1024;
  std::size_t references = 512;
  std::size_t extras = kMaxFreeAfter;
};

// Few messages have more values than this. Messages within these sizes need no allocation.
using Scalars = absl::InlinedVector<double, 2>;
using Integers = absl::InlinedVector<std::int64_t, 4>;

struct Reference {
  int field = 0;  // index in ScanSchema::Fields::references
  std::string text;

  bool operator==(const Reference&) const = default;
};

struct ScannedMessage {
  std::string header;
  std::vector<PayloadRange> payloads;  // by the index in the token
  Scalars scalars;                     // by the index in the token
  Integers integers;                   // by the index in the token
  std::vector<Reference> references;   // by the index in the token
  std::vector<std::string> extras;     // in message order
};

// Returns INVALID_ARGUMENT if the message is malformed or exceeds a limit. In the latter case, the text gives
// the value and the limit. The time is linear in the bytes outside of payloads and in the number of slices.
absl::StatusOr<ScannedMessage> ScanMessage(const ScanSchema& schema, Slices slices,
                                           const ScanLimits& limits = {});

// Returns the index into ScannedMessage::payloads that a token represents; nothing if it is not a token.
std::optional<std::size_t> PayloadIndex(std::string_view token);
// Returns the token for the payload with this index.
std::string PayloadToken(std::size_t index);

// Same for scalars. Their tokens are numbers too. No token is 0, because 0 means that the field is absent.
std::optional<std::size_t> ScalarIndex(double token);
double ScalarToken(std::size_t index);

// Same for integers. No token is 0 either.
std::optional<std::size_t> IntegerIndex(std::int64_t token);
std::int64_t IntegerToken(std::size_t index);

// Same for references. Their tokens are valid UTF-8. No token is empty, because "" means that the field is
// absent.
std::optional<std::size_t> ReferenceIndex(std::string_view token);
std::string ReferenceToken(std::size_t index);

}  // namespace warpline

#endif  // WARPLINE_PROTO_WIRE_SCANNER_H_
