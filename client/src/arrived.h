// A response as it arrived: parsed by protobuf, but for its payloads, which stay in gRPC's slices until they
// are copied to their place.
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

// The message has tokens in the place of its payloads, which lie in the slices.
template <typename Response>
struct Arrived {
  std::vector<grpc::Slice> slices;
  std::vector<std::span<const std::byte>> spans;  // of the slices
  std::vector<PayloadRange> payloads;
  Response message;

  // The payload for which the token stands. A field that is absent has an empty one.
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

// Internal if it is no Response. `payload` is the field whose contents are payloads, always the same for one
// Response.
template <typename Response>
absl::StatusOr<Arrived<Response>> ReadResponse(const grpc::ByteBuffer& message,
                                               const google::protobuf::FieldDescriptor* payload) {
  // The server chooses what comes before the elements, so a response has only the limits of any message.
  constexpr ScanLimits kLimits{.header_bytes = kMaxMessageBytes, .payloads = kMaxMessageBytes};
  // It is never destroyed: a callback may still use it while the process ends.
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
