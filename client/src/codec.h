// The messages of the API, as slices. Elements are neither copied into requests nor out of responses by
// protobuf, which reads and writes everything else.
#ifndef WARPLINE_CLIENT_SRC_CODEC_H_
#define WARPLINE_CLIENT_SRC_CODEC_H_

#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "client/src/message_writer.h"
#include "warpline/array.h"
#include "warpline/requests.h"
#include "warpline/tensor.h"

namespace warpline::client {

// Finds where elements lie in memory that is shared with the server. Returns nothing if they lie in other
// memory.
using FindSlice =
    std::function<absl::StatusOr<std::optional<v1::RegionSlice>>(const void* data, std::size_t bytes)>;

// A result that the server writes into shared memory: its location and its type.
struct SharedResult {
  v1::RegionSlice slice{};
  Array array{};
};

// The parts of one request that lie in shared memory.
struct SharedPlaces {
  // Called for each operand that is an array and has elements. Null: no operand lies in shared memory.
  FindSlice find{};
  // One entry for each output. If the entry is empty or missing, that output does not lie in shared memory.
  std::vector<std::optional<SharedResult>> results{};

  const SharedResult* result(std::size_t output) const {
    return output < results.size() && results[output] ? &*results[output] : nullptr;
  }
};

// The part of CallOptions that is sent with a request.
struct SentOptions {
  std::span<const std::string> free_after{};
  bool report = false;
};

// Returns InvalidArgument for impossible sizes, and ResourceExhausted for a message over kMaxMessageBytes.
// Other errors are those of SharedPlaces::find. Of each destination, the request contains only whether the
// result stays on the server.
absl::StatusOr<OutgoingMessage> Encode(const RunArgs& args, const SharedPlaces& shared = {},
                                       const SentOptions& options = {});
absl::StatusOr<OutgoingMessage> EncodeEcho(const Payload& payload);

// Makes the handle of a result that stays on the server. The default handle does not renew or drop the
// tensor.
using MakeTensor = std::function<Tensor(TensorInfo)>;
inline Tensor MakeUnleased(TensorInfo info) { return Tensor(std::move(info)); }

// Decodes the response to a program with these outputs. Elements are copied once, from the slices to their
// destination. Results in shared memory are already there. Returns Internal for an invalid response, and
// ResourceExhausted if a result does not fit its destination.
absl::StatusOr<RunResult> DecodeRunResult(const grpc::ByteBuffer& message,
                                          std::span<const std::string> outputs,
                                          std::span<const Destination> destinations,
                                          const MakeTensor& make_tensor = MakeUnleased,
                                          const SharedPlaces& shared = {});

// Copies the echoed bytes to the destination and returns their number.
absl::StatusOr<std::size_t> DecodeEcho(const grpc::ByteBuffer& message, const Destination& destination);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_CODEC_H_
