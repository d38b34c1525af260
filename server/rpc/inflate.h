// Decompression of request messages, with a bound.
//
// gRPC 1.51 limits the size of a message before it decompresses it, not after, and a compressed message may
// stand for a thousand times its size. So the server takes messages as they were sent and inflates them here.
#ifndef WARPLINE_SERVER_RPC_INFLATE_H_
#define WARPLINE_SERVER_RPC_INFLATE_H_

#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "server/rpc/message_slices.h"

namespace warpline {

// A message's slices and whether they are compressed; the slices are references, the message keeps its own.
struct ReceivedMessage {
  MessageSlices slices;
  bool compressed = false;
};
ReceivedMessage SlicesOf(grpc::ByteBuffer& message);

// The content of a gzip or zlib stream. INVALID_ARGUMENT if it is broken or cut short; RESOURCE_EXHAUSTED if
// it has more than `limit` bytes, before it has taken more memory than that and one piece of 256 KiB.
absl::StatusOr<std::vector<grpc::Slice>> Inflate(std::span<const grpc::Slice> compressed, std::size_t limit);

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_INFLATE_H_
