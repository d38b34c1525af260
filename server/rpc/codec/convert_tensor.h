// The checks for every tensor of a request, independent of the operation. Pure.
#ifndef WARPLINE_SERVER_RPC_CODEC_CONVERT_TENSOR_H_
#define WARPLINE_SERVER_RPC_CODEC_CONVERT_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "kernels/program.h"
#include "proto/wire/scanner.h"
#include "server/plan/plan.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline {

// The maximum number of uploads of one request: their ids fit into the metadata that clients accept.
inline constexpr std::size_t kMaxUploads = 64;

struct Limits {
  // Maximum bytes of all tensors of one request, and of all its results. Unit: bytes.
  std::int64_t max_inline_bytes = 0;
  // Maximum estimated time of one request on a device; 0 means no limit. The service checks it, not the
  // conversion.
  double max_device_seconds = 0;
};

// The values for the tokens in a header, as the scan found them. References are resolved: each entry is the
// tensor that it names, or the reason why there is none.
struct TokenValues {
  std::span<const PayloadRange> payloads;
  std::span<const double> scalars;
  std::span<const std::int64_t> integers = {};
  std::span<const absl::StatusOr<TensorSpec>> references = {};
};

// A tensor whose data type, shape, row stride and source are consistent.
struct CheckedTensor {
  // A payload, of which the first spec.bytes bytes are read; or a resident tensor, by a reference of the
  // request; or a slice of a shared region; or an upload. None of these if there are no bytes.
  struct Source {
    std::optional<std::size_t> payload;    // number in TokenValues::payloads
    std::optional<std::size_t> reference;  // number in TokenValues::references
    std::optional<std::size_t> upload;     // its number
    std::optional<PlannedSlice> slice;
  };
  TensorSpec spec;
  std::int64_t row_stride = 0;  // never 0, which means dense in requests
  Source source;
};

// Reads a slice of a request. `field` is its name ("a.region"). INVALID_ARGUMENT if it names no region. It
// does not check whether the region exists or how long it is.
absl::StatusOr<PlannedSlice> ReadSlice(std::string field, const v1::RegionSlice& slice,
                                       const TokenValues& values);

// Reads the tensors of one request and adds up the bytes of those that are in the message. Keeps references
// to both constructor arguments.
class TensorReader {
 public:
  TensorReader(const TokenValues& values, const Limits& limits) : values_(values), limits_(limits) {}

  // `field` is the tensor's name in the request; errors name the wrong part of it ("a.shape"). `tensor` is
  // null if the request lacks it.
  absl::StatusOr<CheckedTensor> Read(std::string_view field, const v1::Tensor* tensor);

 private:
  // OK if all operands with the same upload number are the same array.
  absl::Status CheckSameUpload(std::string_view field, const CheckedTensor& tensor);

  const TokenValues& values_;
  const Limits& limits_;
  std::size_t bytes_ = 0;
  std::map<std::size_t, TensorSpec> uploads_;  // by number
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_CODEC_CONVERT_TENSOR_H_
