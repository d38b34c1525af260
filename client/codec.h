// The messages of the API, as slices: requests encoded by hand, responses taken apart by hand.
#ifndef WARPLINE_CLIENT_CODEC_H_
#define WARPLINE_CLIENT_CODEC_H_

#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/array.h"
#include "client/wire.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline::client {

// The requests, field by field as in warpline.proto, which says what is valid.
struct TransposeArgs {
  ConstArray x{};
  std::vector<int> perm{};
  std::string variant{};
};

struct GemmArgs {
  ConstArray a{}, b{};
  std::optional<ConstArray> c{};
  bool trans_a = false, trans_b = false;
  std::optional<double> alpha{}, beta{};
  v1::Precision precision = v1::PRECISION_UNSPECIFIED;
  std::string variant{};
};

struct ReduceArgs {
  ConstArray x{};
  v1::ReduceOp op = v1::REDUCE_OP_SUM;
  std::vector<int> axes{};
  bool keepdims = false;
  std::string variant{};
};

// What came of an operation: the array, and how it was computed.
struct Result {
  Array array;
  v1::Execution execution;
};

// InvalidArgument for what cannot be sent at all: impossible sizes, a message over kMaxMessageBytes.
absl::StatusOr<OutgoingMessage> Encode(const TransposeArgs& args);
absl::StatusOr<OutgoingMessage> Encode(const GemmArgs& args);
absl::StatusOr<OutgoingMessage> Encode(const ReduceArgs& args);
absl::StatusOr<OutgoingMessage> EncodeEcho(const Payload& payload);

// Any of the three responses: they have the same fields. Elements are copied once, from the slices to their
// place. Internal for a response that is not valid; ResourceExhausted if it does not fit the destination.
absl::StatusOr<Result> DecodeResult(const grpc::ByteBuffer& message, const Destination& destination);

// Copies the echoed bytes to the destination and returns how many there are.
absl::StatusOr<std::size_t> DecodeEcho(const grpc::ByteBuffer& message, const Destination& destination);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_CODEC_H_
