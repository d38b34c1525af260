// The messages of the API, as slices. Elements are neither copied into requests nor out of responses by
// protobuf, which reads and writes everything else.
#ifndef WARPLINE_CLIENT_SRC_CODEC_H_
#define WARPLINE_CLIENT_SRC_CODEC_H_

#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "client/src/message_writer.h"
#include "warpline/array.h"
#include "warpline/requests.h"
#include "warpline/tensor.h"

namespace warpline::client {

// InvalidArgument for what cannot be sent at all: impossible sizes, a message over kMaxMessageBytes. Of a
// destination, the request says only whether the result is to stay on the server.
absl::StatusOr<OutgoingMessage> Encode(const TransposeArgs& args, const Destination& destination = {});
absl::StatusOr<OutgoingMessage> Encode(const GemmArgs& args, const Destination& destination = {});
absl::StatusOr<OutgoingMessage> Encode(const ReduceArgs& args, const Destination& destination = {});
absl::StatusOr<OutgoingMessage> Encode(const RunArgs& args);
absl::StatusOr<OutgoingMessage> EncodeEcho(const Payload& payload);

// Makes the handle of a result that stays on the server. The default makes one that nobody renews or drops.
using MakeTensor = std::function<Tensor(TensorInfo)>;
inline Tensor MakeUnleased(TensorInfo info) { return Tensor(std::move(info)); }

// The response of any single operation: the three have the same fields. Elements are copied once, from the
// slices to their place. Internal for a response that is not valid; ResourceExhausted if it does not fit the
// destination.
absl::StatusOr<Result> DecodeResult(const grpc::ByteBuffer& message, const Destination& destination,
                                    const MakeTensor& make_tensor = MakeUnleased);

// The response to a program with these outputs, of which each is copied once. Errors as above.
absl::StatusOr<RunResult> DecodeRunResult(const grpc::ByteBuffer& message,
                                          std::span<const std::string> outputs,
                                          std::span<const Destination> destinations,
                                          const MakeTensor& make_tensor = MakeUnleased);

// Copies the echoed bytes to the destination and returns how many there are.
absl::StatusOr<std::size_t> DecodeEcho(const grpc::ByteBuffer& message, const Destination& destination);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_CODEC_H_
