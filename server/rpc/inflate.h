// Decompresses request messages, with a size limit.
//
// gRPC 1.51 limits the size of a message before decompression, not after, and a compressed message may
// decompress to a thousand times its size. So the server receives messages as they were sent, and inflates
// them here.
#ifndef WARPLINE_SERVER_RPC_INFLATE_H_
#define WARPLINE_SERVER_RPC_INFLATE_H_

#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "server/rpc/message_slices.h"

namespace warpline {

// A message's slices, and whether they are compressed. The slices are references; the message keeps its own.
struct ReceivedMessage {
  MessageSlices slices;
  bool compressed = false;
};
ReceivedMessage SlicesOf(grpc::ByteBuffer& message);

// Returns the content of a gzip or zlib stream. INVALID_ARGUMENT if it is invalid or incomplete.
// RESOURCE_EXHAUSTED if it has more than `limit` bytes; this is detected after allocating at most that much
// plus one piece of 256 KiB.
absl::StatusOr<std::vector<grpc::Slice>> Inflate(std::span<const grpc::Slice> compressed, std::size_t limit);

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_INFLATE_H_
