// A response as it arrived. protobuf parses it, except for its payloads: they stay in gRPC's slices until
// they are copied to their destination.
#ifndef WARPLINE_CLIENT_SRC_ARRIVED_H_
#define WARPLINE_CLIENT_SRC_ARRIVED_H_

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "client/src/message_writer.h"
#include "proto/wire/scanner.h"

namespace warpline::client {

inline absl::Status BadResponse(absl::string_view why) {
  return absl::InternalError(absl::StrCat("the server's response is not valid: ", why));
}

// In `message`, a token replaces each payload. The payloads themselves lie in the slices.
template <typename Response>
struct Arrived {
  std::vector<grpc::Slice> slices;
  std::vector<std::span<const std::byte>> spans;  // views of the slices
  std::vector<PayloadRange> payloads;
  Response message;

  // Returns the payload that the token replaces. A field that is absent has an empty payload.
  absl::StatusOr<PayloadRange> PayloadOf(const std::string& token) const {
    if (token.empty()) return PayloadRange{};
    const std::optional<std::size_t> index = PayloadIndex(token);
    if (!index.has_value() || *index >= payloads.size()) return absl::InternalError("no token of a payload");
    return payloads[*index];
  }
  void CopyTo(void* destination, const PayloadRange& range) const {
    auto* to = static_cast<std::byte*>(destination);
    ForEachPiece(spans, range, [&](std::span<const std::byte> piece) {
      std::memcpy(to, piece.data(), piece.size());
      to += piece.size();
    });
  }
};

// Returns Internal if `message` is not a valid Response. `payload` is the field that holds the payloads. It
// must always be the same field for one type of Response.
template <typename Response>
absl::StatusOr<Arrived<Response>> ReadResponse(const grpc::ByteBuffer& message,
                                               const google::protobuf::FieldDescriptor* payload) {
  // The server decides how many bytes precede the elements. So the only limits are those of any message.
  constexpr ScanLimits kLimits{.header_bytes = kMaxMessageBytes, .payloads = kMaxMessageBytes};
  // The schema is never destroyed: a callback may still use it while the process ends.
  static const auto& schema = *new ScanSchema(ScanSchema::For(Response::descriptor(), {.payload = payload}));
  Arrived<Response> arrived;
  if (message.Valid() && !message.Dump(&arrived.slices).ok()) {
    return BadResponse("it cannot be decompressed");
  }
  arrived.spans = SpansOf(arrived.slices);
  absl::StatusOr<ScannedMessage> scanned = ScanMessage(schema, arrived.spans, kLimits);
  if (!scanned.ok()) return BadResponse(scanned.status().message());
  if (!arrived.message.ParseFromString(scanned->header)) {
    return BadResponse(absl::StrCat("it is no ", Response::descriptor()->name()));
  }
  arrived.payloads = std::move(scanned->payloads);
  return arrived;
}

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_ARRIVED_H_
