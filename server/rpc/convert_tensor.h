// The checks that every tensor of a request goes through, whatever the operation. Pure.
#ifndef WARPLINE_SERVER_RPC_CONVERT_TENSOR_H_
#define WARPLINE_SERVER_RPC_CONVERT_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/dtype.h"
#include "kernels/program.h"
#include "kernels/shape.h"
#include "server/rpc/wire_scanner.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline {

struct Limits {
  // Of one request's tensors together, and of its result. Unit: bytes.
  std::int64_t max_inline_bytes = 0;
};

// A tensor whose data type, shape, row stride and payload agree with one another.
struct CheckedTensor {
  TensorSpec spec;
  std::int64_t row_stride = 0;  // never the 0 that means dense
  PayloadRange payload;         // of spec.bytes bytes
};

enum class Rows { kDense, kMayBePadded };

// Reads the tensors of one request, and adds up their bytes. Keeps references to what it is made of.
class TensorReader {
 public:
  // `payloads` are the scan's, to which the tensors' tokens point.
  TensorReader(std::span<const PayloadRange> payloads, const Limits& limits)
      : payloads_(payloads), limits_(limits) {}

  // `field` is the tensor's name in the request; errors name what is wrong inside it ("a.shape"). A null
  // tensor is one that the request lacks. Padded rows are UNIMPLEMENTED where they may not be.
  absl::StatusOr<CheckedTensor> Read(std::string_view field, const v1::Tensor* tensor, Rows rows);

 private:
  const std::span<const PayloadRange> payloads_;
  const Limits& limits_;
  std::size_t bytes_ = 0;
};

// The dense result of an operation. `field` is what to blame should it be above the limit.
absl::StatusOr<TensorSpec> CheckResult(std::string_view field, DType dtype, const Shape& shape,
                                       const Limits& limits);

// INVALID_ARGUMENT naming the data types that the operation takes, if the tensor's is not one of them.
absl::Status CheckSupported(std::string_view field, const CheckedTensor& tensor, std::string_view operation,
                            std::span<const DType> supported);

v1::DataType ToProto(DType dtype);

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_CONVERT_TENSOR_H_
