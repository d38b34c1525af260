// The checks that every tensor of a request goes through, whatever the operation. Pure.
#ifndef WARPLINE_SERVER_RPC_CODEC_CONVERT_TENSOR_H_
#define WARPLINE_SERVER_RPC_CODEC_CONVERT_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/dtype.h"
#include "kernels/program.h"
#include "kernels/shape.h"
#include "proto/wire/scanner.h"
#include "server/plan/plan.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline {

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
  // request names, or a slice of a shared region. None of them if there are no bytes.
  struct Source {
    std::optional<std::size_t> payload;    // number in TokenValues::payloads
    std::optional<std::size_t> reference;  // number in TokenValues::references
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
  const TokenValues& values_;
  const Limits& limits_;
  std::size_t bytes_ = 0;
};

// Bytes from the first element to the end of the last one of a shape whose rows are `row_stride` elements
// apart (0: dense). The last row needs no padding. Fails unless the product of all sizes that are not zero,
// the row stride in place of the last, in bytes, is at most 2^56. Then so is the product of any selection of
// them.
absl::StatusOr<std::size_t> StorageBytes(std::string_view field, DType dtype, const Shape& shape,
                                         std::int64_t row_stride);

// A shape of at most kMaxRank axes, none of them negative.
absl::StatusOr<Shape> CheckShape(std::string_view field,
                                 const google::protobuf::RepeatedField<std::int64_t>& sizes);

// Returns INVALID_ARGUMENT, with the names of all data types, if the number stands for none of them or is
// unspecified.
absl::StatusOr<DType> CheckDataType(std::string_view field, v1::DataType data_type);

// The names of the data types for which `holds` is true, as in "i8, f16".
std::string NamesWhere(bool (*holds)(DType));

v1::DataType ToProto(DType dtype);

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_CODEC_CONVERT_TENSOR_H_
