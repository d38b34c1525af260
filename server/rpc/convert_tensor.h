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

// A tensor whose data type, shape, row stride and payload agree with one another.
struct CheckedTensor {
  TensorSpec spec;
  std::int64_t row_stride = 0;  // never the 0 that means dense
  PayloadRange payload;         // of spec.bytes bytes
};

// `field` is the tensor's name in the request; errors name what is wrong inside it ("a.shape"). A null
// tensor is one that the request lacks. `payloads` are the scan's, to which the tensor's token points.
absl::StatusOr<CheckedTensor> CheckTensor(std::string_view field, const v1::Tensor* tensor,
                                          std::span<const PayloadRange> payloads);

// UNIMPLEMENTED if the rows are padded.
absl::Status CheckDense(std::string_view field, const CheckedTensor& tensor);

// INVALID_ARGUMENT naming the data types that the operation takes, if the tensor's is not one of them.
absl::Status CheckSupported(std::string_view field, const CheckedTensor& tensor, std::string_view operation,
                            std::span<const DType> supported);

// Bytes of the storage of a shape whose rows are `row_stride` elements apart. Fails unless the product of
// all sizes but the zeros fits in 63 bits: then so does every product of a selection of them, in any order.
absl::StatusOr<std::size_t> StorageBytes(std::string_view field, DType dtype, const Shape& shape,
                                         std::int64_t row_stride);

// The size of the last axis; 1 for a scalar.
std::int64_t RowSize(const Shape& shape);

v1::DataType ToProto(DType dtype);

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_CONVERT_TENSOR_H_
