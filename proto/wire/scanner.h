// Finds the payloads (contents of one `bytes` field, such as Tensor.inline) of a message in its wire bytes,
// so that they are copied once, from gRPC's slices to where they are needed, and never become a protobuf
// `bytes` field. Server and client both read messages through it.
//
// One pass over the slices makes a small copy of the message, the header, in which the content of every
// payload is replaced by a token. The generated parser then reads the header: merging of split messages,
// last-one-wins and oneof rules stay protobuf's own, and the field holds the token of the payload that won.
// Scanning and then parsing the header accepts exactly the bytes that parsing them directly accepts, within
// the limits.
//
// Scalars and integers (values of fields of type double and int64 that the schema names) and references
// (values of the string fields that it names, such as ids) are replaced by tokens in the same way, so that
// messages that differ in nothing but these and payloads have the same header. Extras (contents of repeated
// string fields that it names) are taken out of the message, so that the header does not depend on how many
// there are either.
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

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "proto/wire/slices.h"

namespace google::protobuf {
class Descriptor;
class FieldDescriptor;
}  // namespace google::protobuf

namespace warpline {

// Which fields of a message type, and of the messages in it, are payloads, scalars, integers, references,
// extras or messages. Immutable: make one per type, at start.
class ScanSchema {
 public:
  using Field = google::protobuf::FieldDescriptor;
  // Wherever in the message they occur.
  struct Fields {
    const Field* payload = nullptr;        // whose contents are payloads
    std::vector<const Field*> scalars;     // of type double
    std::vector<const Field*> integers;    // of type int64
    std::vector<const Field*> references;  // of type string
    const Field* extra = nullptr;          // likewise, and repeated
    std::string extra_path{};              // of it in the message, for errors
  };
  static ScanSchema For(const google::protobuf::Descriptor* message, const Fields& fields);

  static constexpr int kRoot = 0;
  static constexpr int kPayload = -1;
  static constexpr int kScalar = -2;
  static constexpr int kInteger = -3;
  static constexpr int kExtra = -4;
  // And below: minus the number of the field in Fields::references.
  static constexpr int kReference = -5;

  // The content of field `number` of message type `message`, if it has the wire type of its declaration:
  // kPayload, kScalar, kInteger, kExtra, kReference or less, or the index of its message type. Nothing if the
  // scanner does not look into it.
  std::optional<int> Find(int message, std::uint32_t number) const;
  const std::string& extra_path() const { return extra_path_; }

 private:
  struct Known {
    std::uint32_t number;
    int content;
  };
  std::vector<std::vector<Known>> messages_;  // the one asked for first, then those it reaches
  std::string extra_path_;
};

// Limit of the API for RequestOptions.free_after.
inline constexpr std::size_t kMaxFreeAfter = 256;

// Limit of the API for everything but the elements of a request. Unit: bytes.
inline constexpr std::size_t kMaxHeaderBytes = std::size_t{1} << 20;

struct ScanLimits {
  // Whatever is not a payload is copied, unknown fields, references and extras too. The default has room for
  // a program of 256 steps with maps of 256 nodes. Unit: bytes; less than 2^31.
  std::size_t header_bytes = kMaxHeaderBytes;
  // Repeated singular fields count each time.
  std::size_t payloads = 1024;
  std::size_t references = 512;
  std::size_t extras = kMaxFreeAfter;
};

// Few messages have more; those that have no more take no allocation.
using Scalars = absl::InlinedVector<double, 2>;
using Integers = absl::InlinedVector<std::int64_t, 4>;

struct Reference {
  int field = 0;  // number in ScanSchema::Fields::references
  std::string text;

  bool operator==(const Reference&) const = default;
};

struct ScannedMessage {
  std::string header;
  std::vector<PayloadRange> payloads;  // by index in the token
  Scalars scalars;                     // likewise
  Integers integers;                   // likewise
  std::vector<Reference> references;   // likewise
  std::vector<std::string> extras;     // in their order
};

// INVALID_ARGUMENT if the message is malformed or over a limit; then the text gives figure and limit.
// Takes time linear in the bytes outside of payloads and in the number of slices.
absl::StatusOr<ScannedMessage> ScanMessage(const ScanSchema& schema, Slices slices,
                                           const ScanLimits& limits = {});

// The index into ScannedMessage::payloads that a token stands for. Nothing if it is no token.
std::optional<std::size_t> PayloadIndex(std::string_view token);
// The token that stands for the payload with this index in a header.
std::string PayloadToken(std::size_t index);

// The same for scalars, whose tokens are numbers too. No token is 0, which stands for an absent field.
std::optional<std::size_t> ScalarIndex(double token);
double ScalarToken(std::size_t index);

// The same for integers. No token is 0 either.
std::optional<std::size_t> IntegerIndex(std::int64_t token);
std::int64_t IntegerToken(std::size_t index);

// The same for references, whose tokens are valid UTF-8. No token is empty, which stands for an absent field.
std::optional<std::size_t> ReferenceIndex(std::string_view token);
std::string ReferenceToken(std::size_t index);

}  // namespace warpline

#endif  // WARPLINE_PROTO_WIRE_SCANNER_H_
