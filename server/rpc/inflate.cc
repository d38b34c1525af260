#include "server/rpc/inflate.h"

#include <grpc/byte_buffer.h>
#include <zlib.h>

#include <algorithm>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"

// ByteBuffer names this class as a friend, for whoever must see the core's buffer, and leaves its definition
// to them: every public accessor of a ByteBuffer decompresses all of it.
namespace grpc::internal {
class GrpcByteBufferPeer {
 public:
  static grpc_byte_buffer* Buffer(ByteBuffer& buffer) { return buffer.c_buffer(); }
};
}  // namespace grpc::internal

namespace warpline {
namespace {

constexpr std::size_t kPieceBytes = 256 << 10;

}  // namespace

ReceivedMessage SlicesOf(grpc::ByteBuffer& message) {
  ReceivedMessage received;
  const grpc_byte_buffer* buffer = grpc::internal::GrpcByteBufferPeer::Buffer(message);
  if (buffer == nullptr) return received;
  received.compressed = buffer->data.raw.compression != GRPC_COMPRESS_NONE;
  const grpc_slice_buffer& slices = buffer->data.raw.slice_buffer;
  received.slices.reserve(slices.count);
  for (std::size_t i = 0; i < slices.count; ++i) {
    received.slices.emplace_back(slices.slices[i], grpc::Slice::ADD_REF);
  }
  return received;
}

absl::StatusOr<std::vector<grpc::Slice>> Inflate(std::span<const grpc::Slice> compressed, std::size_t limit) {
  z_stream stream{};
  constexpr int kDetectFormat = MAX_WBITS + 32;  // gzip or zlib, told apart by their headers
  if (inflateInit2(&stream, kDetectFormat) != Z_OK) return absl::ResourceExhaustedError("no memory for zlib");
  const absl::Cleanup end = [&stream] { inflateEnd(&stream); };
  std::vector<grpc::Slice> inflated;
  std::size_t total = 0;
  int state = Z_OK;
  for (const grpc::Slice& slice : compressed) {
    stream.next_in = const_cast<Bytef*>(slice.begin());  // zlib only reads it
    stream.avail_in = static_cast<uInt>(slice.size());
    do {
      // One byte more than is allowed tells "exactly the limit" from "too much".
      const std::size_t room = std::min(kPieceBytes, limit - total + 1);
      grpc_slice piece = grpc_slice_malloc_large(room);
      stream.next_out = GRPC_SLICE_START_PTR(piece);
      stream.avail_out = static_cast<uInt>(room);
      state = inflate(&stream, Z_NO_FLUSH);
      const std::size_t written = room - stream.avail_out;
      GRPC_SLICE_SET_LENGTH(piece, written);
      inflated.emplace_back(piece, grpc::Slice::STEAL_REF);
      total += written;
      if (total > limit) {
        return absl::ResourceExhaustedError(
            absl::StrCat("the message is larger than ", limit, " bytes when decompressed"));
      }
      // Z_BUF_ERROR: all input is used up, and nothing was left to write.
    } while (state == Z_OK && (stream.avail_in > 0 || stream.avail_out == 0));
    if (state != Z_OK && state != Z_BUF_ERROR) break;
  }
  if (state != Z_STREAM_END || stream.avail_in > 0) {
    return absl::InvalidArgumentError(
        "the message is not what its grpc-encoding says: it does not decompress");
  }
  return inflated;
}

}  // namespace warpline
