// The messages of the API, as slices. Elements are neither copied into requests nor out of responses by
// protobuf, which reads and writes everything else.
#ifndef WARPLINE_CLIENT_CODEC_H_
#define WARPLINE_CLIENT_CODEC_H_

#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "client/array.h"
#include "client/message_writer.h"
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
  std::optional<ConstArray> bias{};
  v1::Activation activation = v1::ACTIVATION_UNSPECIFIED;
  std::optional<DType> out_data_type{};
};

struct ReduceArgs {
  ConstArray x{};
  v1::ReduceOp op = v1::REDUCE_OP_SUM;
  std::vector<int> axes{};
  bool keepdims = false;
  std::string variant{};
  std::optional<DType> out_data_type{};
  int ddof = 0;
};

// A program is written as a message, or parsed from an expression (expression.h).
struct RunArgs {
  v1::Program program{};
  std::vector<std::pair<std::string, ConstArray>> inputs{};
  // Where the outputs go, in their order. Those without one here go into new memory.
  std::vector<Destination> destinations{};
};

// What came of an operation: the array, and how it was computed.
struct Result {
  Array array;
  v1::Execution execution;
};

struct RunResult {
  // In the order of Program.outputs.
  std::vector<std::pair<std::string, Array>> outputs;
  v1::Execution execution;
};

// InvalidArgument for what cannot be sent at all: impossible sizes, a message over kMaxMessageBytes.
absl::StatusOr<OutgoingMessage> Encode(const TransposeArgs& args);
absl::StatusOr<OutgoingMessage> Encode(const GemmArgs& args);
absl::StatusOr<OutgoingMessage> Encode(const ReduceArgs& args);
absl::StatusOr<OutgoingMessage> Encode(const RunArgs& args);
absl::StatusOr<OutgoingMessage> EncodeEcho(const Payload& payload);

// The response of any single operation: the three have the same fields. Elements are copied once, from the
// slices to their place. Internal for a response that is not valid; ResourceExhausted if it does not fit the
// destination.
absl::StatusOr<Result> DecodeResult(const grpc::ByteBuffer& message, const Destination& destination);

// The response to a program with these outputs, of which each is copied once. Errors as above.
absl::StatusOr<RunResult> DecodeRunResult(const grpc::ByteBuffer& message,
                                          std::span<const std::string> outputs,
                                          std::span<const Destination> destinations);

// Copies the echoed bytes to the destination and returns how many there are.
absl::StatusOr<std::size_t> DecodeEcho(const grpc::ByteBuffer& message, const Destination& destination);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_CODEC_H_
