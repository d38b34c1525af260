// The messages of TensorService, as slices. Elements are neither copied into requests nor out of responses by
// protobuf, which reads and writes everything else.
#ifndef WARPLINE_CLIENT_SRC_TENSOR_CODEC_H_
#define WARPLINE_CLIENT_SRC_TENSOR_CODEC_H_

#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/src/message_writer.h"
#include "warpline/array.h"
#include "warpline/tensor.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline::client {

OutgoingMessage EncodeCreate(const ConstArray& array, const PutOptions& options);
OutgoingMessage EncodeDrop(const std::string& id);
OutgoingMessage EncodeDropEach(std::span<const std::string> ids);
// Without a ttl, the length of the lease does not change.
OutgoingMessage EncodeRenew(const std::string& id, std::optional<absl::Duration> ttl);
OutgoingMessage EncodeRenewEach(std::span<const std::string> ids);
OutgoingMessage EncodeList(const std::string& page_token);
OutgoingMessage EncodeGet(const std::string& id, std::size_t offset, std::size_t length);
// Makes one message of a Put, with bytes [begin, end) of the array's elements. The bytes are counted as if
// the rows had no padding. The id may be empty, but not in the first message.
OutgoingMessage EncodePut(const std::string& id, const ConstArray& array, std::size_t begin, std::size_t end);

// Returns Internal for an invalid message, as do all functions below.
absl::StatusOr<TensorInfo> DecodeInfo(const v1::TensorInfo& info);
// Decodes a CreateResponse or a RenewResponse, which have the same field.
absl::StatusOr<TensorInfo> DecodeTensor(const grpc::ByteBuffer& message);
// Returns the lengths of the leases in a RenewResponse for one or several ids. There must be `count` of them.
absl::StatusOr<std::vector<absl::Duration>> DecodeRenewedLengths(const grpc::ByteBuffer& message,
                                                                 std::size_t count);

struct TensorPage {
  std::vector<TensorInfo> tensors;
  std::string next_page_token;  // empty: there are no more
};
absl::StatusOr<TensorPage> DecodeList(const grpc::ByteBuffer& message);

// Copies the elements of a GetResponse to the front of `to`, and returns the number of bytes. They must begin
// at byte `offset` of the tensor. More bytes than fit `to` are an error.
absl::StatusOr<std::size_t> DecodeChunk(const grpc::ByteBuffer& message, std::size_t offset,
                                        std::span<std::byte> to);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_TENSOR_CODEC_H_
