#include "server/rpc/inflate.h"

#include <grpc/byte_buffer.h>
#include <zlib.h>

#include <algorithm>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"

// ByteBuffer names this class as a friend for code that needs the core's buffer, and leaves its definition to
// that code. No public accessor tells whether a ByteBuffer is compressed.
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
  std::vector<grpc::Slice> references;
  references.reserve(slices.count);
  for (std::size_t i = 0; i < slices.count; ++i) {
    references.emplace_back(slices.slices[i], grpc::Slice::ADD_REF);
  }
  received.slices = MessageSlices(std::move(references));
  return received;
}

absl::StatusOr<std::vector<grpc::Slice>> Inflate(std::span<const grpc::Slice> compressed, std::size_t limit) {
  z_stream stream{};
  constexpr int kDetectFormat = MAX_WBITS + 32;  // gzip or zlib, told apart by their headers
  if (inflateInit2(&stream, kDetectFormat) != Z_OK) return absl::ResourceExhaustedError("no memory for zlib");
  const absl::Cleanup end = [&stream] { inflateEnd(&stream); };
  const auto broken = [] {
    return absl::InvalidArgumentError(
        "the message is not what its grpc-encoding says: it does not decompress");
  };
  std::vector<grpc::Slice> pieces;
  std::size_t total = 0;
  int state = Z_OK;
  for (const grpc::Slice& slice : compressed) {
    if (slice.size() == 0) continue;
    if (state == Z_STREAM_END) return broken();          // bytes follow the end of the stream
    stream.next_in = const_cast<Bytef*>(slice.begin());  // zlib only reads it
    stream.avail_in = static_cast<uInt>(slice.size());
    do {
      // Each piece is filled before the next one is allocated, because slices may be many and tiny.
      if (stream.avail_out == 0) {
        grpc_slice piece = grpc_slice_malloc_large(kPieceBytes);
        stream.next_out = GRPC_SLICE_START_PTR(piece);
        stream.avail_out = kPieceBytes;
        pieces.emplace_back(piece, grpc::Slice::STEAL_REF);
      }
      const uInt room = stream.avail_out;
      state = inflate(&stream, Z_NO_FLUSH);
      total += room - stream.avail_out;
      if (total > limit) {
        return absl::ResourceExhaustedError(
            absl::StrCat("the message is larger than ", limit, " bytes when decompressed"));
      }
    } while (state == Z_OK && (stream.avail_in > 0 || stream.avail_out == 0));
    if (state == Z_BUF_ERROR) state = Z_OK;  // all input is used up, and nothing was left to write
    if (state != Z_OK && (state != Z_STREAM_END || stream.avail_in > 0)) return broken();
  }
  if (state != Z_STREAM_END) return broken();
  const std::size_t last_bytes = kPieceBytes - stream.avail_out;
  pieces.back() =
      grpc::Slice(grpc_slice_sub_no_ref(pieces.back().c_slice(), 0, last_bytes), grpc::Slice::STEAL_REF);
  return pieces;
}

}  // namespace warpline
