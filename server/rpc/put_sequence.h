// The messages of one call of Put: converts their bytes to ranges of a tensor.
#ifndef WARPLINE_SERVER_RPC_PUT_SEQUENCE_H_
#define WARPLINE_SERVER_RPC_PUT_SEQUENCE_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/wire/scanner.h"
#include "server/base/owner.h"
#include "server/store/byte_ranges.h"
#include "server/store/tensor_store.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline {

// The maximum bytes of `data` in one message of Put.
inline constexpr std::size_t kMaxChunkBytes = std::size_t{4} << 20;

// Returns the schema of PutRequest, with `data` as its payload.
ScanSchema PutSchema();

// One message. Its data is in the scanned slices.
struct PutMessage {
  v1::PutRequest request;  // without the data
  PayloadRange data;
};
// INVALID_ARGUMENT if it is not a PutRequest, or has more than kMaxChunkBytes of data.
absl::StatusOr<PutMessage> ReadPutMessage(const ScanSchema& schema, Slices slices);

// Tracks which tensor is written, and which range of it. Not thread-safe.
class PutSequence {
 public:
  PutSequence(TensorStore& tensors, OwnerId owner) : tensors_(tensors), owner_(owner) {}

  // True once a message that names a tensor was accepted.
  bool has_begun() const { return !id_.empty(); }
  // Begin gets the first message. Then Extend gets each message, including the first one, and returns the
  // range of the tensor for its data. After an error the rest of the call is ignored. Errors are those of the
  // store, with the field. INVALID_ARGUMENT also if a message does not continue where the previous one ended.
  absl::Status Begin(const v1::PutRequest& first);
  absl::StatusOr<ByteRange> Extend(const PutMessage& message);

  // The write to the tensor, once the sequence has begun.
  TensorStore::Writing& writing() { return writing_; }
  const TensorStore::Writing& writing() const { return writing_; }

 private:
  TensorStore& tensors_;
  const OwnerId owner_;
  std::string id_;  // empty before the first message
  TensorStore::Writing writing_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_PUT_SEQUENCE_H_
