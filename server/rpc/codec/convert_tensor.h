// The checks that every tensor of a request goes through, whatever the operation. Pure.
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
  // The most that the tensors of one request may have together, and likewise its results. Unit: bytes.
  std::int64_t max_inline_bytes = 0;
  // The longest time that one request may take on a device, as it is estimated; 0 means no limit. The service
  // checks it, not the conversion.
  double max_device_seconds = 0;
};

// The values that the tokens in a header stand for: what the scan found. References are resolved: each is the
// tensor that it names, or the reason why there is none.
struct TokenValues {
  std::span<const PayloadRange> payloads;
  std::span<const double> scalars;
  std::span<const std::int64_t> integers = {};
  std::span<const absl::StatusOr<TensorSpec>> references = {};
};

// A tensor whose data type, shape, row stride and source agree with one another.
struct CheckedTensor {
  // A payload of which the first spec.bytes bytes are read, the resident tensor that a reference of the
  // request names, a slice of a shared region, or an upload. None of them if there are no bytes.
  struct Source {
    std::optional<std::size_t> payload;    // number in TokenValues::payloads
    std::optional<std::size_t> reference;  // number in TokenValues::references
    std::optional<std::size_t> upload;     // its number
    std::optional<PlannedSlice> slice;
  };
  TensorSpec spec;
  std::int64_t row_stride = 0;  // never the 0 that means dense
  Source source;
};

// A slice as the request names it. `field` is its name ("a.region"). INVALID_ARGUMENT if it names no region;
// which regions there are, and how long, is for others to check.
absl::StatusOr<PlannedSlice> ReadSlice(std::string field, const v1::RegionSlice& slice,
                                       const TokenValues& values);

// Reads the tensors of one request, and adds up the bytes of those that come with it. Keeps references to
// both arguments of its constructor.
class TensorReader {
 public:
  TensorReader(const TokenValues& values, const Limits& limits) : values_(values), limits_(limits) {}

  // `field` is the tensor's name in the request; errors name what is wrong inside it ("a.shape"). A null
  // tensor is one that the request lacks.
  absl::StatusOr<CheckedTensor> Read(std::string_view field, const v1::Tensor* tensor);

 private:
  // OK if the operands that had the same number of an upload before are the same array.
  absl::Status CheckSameUpload(std::string_view field, const CheckedTensor& tensor);

  const TokenValues& values_;
  const Limits& limits_;
  std::size_t bytes_ = 0;
  std::map<std::size_t, TensorSpec> uploads_;  // by number
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_CODEC_CONVERT_TENSOR_H_
