// The rules for the types and shapes of tensors, independent of the operation. Pure.
#ifndef WARPLINE_PROTO_RULES_TENSOR_RULES_H_
#define WARPLINE_PROTO_RULES_TENSOR_RULES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/dtype.h"
#include "kernels/program.h"
#include "kernels/shape.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline {

// A consistent data type, shape and row stride.
struct Layout {
  TensorSpec spec;
  std::int64_t row_stride = 0;  // never 0 (the API's value for dense)
};

// Returns the layout of an array with these sizes. `field` is the tensor's name; errors name the invalid part
// ("a.shape").
absl::StatusOr<Layout> CheckLayout(std::string_view field, DType dtype, absl::Span<const std::int64_t> sizes,
                                   std::int64_t row_stride);

// Returns the number of bytes from the first element to the end of the last one. Rows are `row_stride`
// elements apart (0: dense). The last row needs no padding. Fails if the product of all nonzero sizes, with
// the row stride instead of the last size, is more than 2^56 bytes. So the product of any selection of them
// is within this limit too.
absl::StatusOr<std::size_t> StorageBytes(std::string_view field, DType dtype, const Shape& shape,
                                         std::int64_t row_stride);

// Returns a shape of at most kMaxRank axes, with no negative sizes.
absl::StatusOr<Shape> CheckShape(std::string_view field, absl::Span<const std::int64_t> sizes);

// Returns INVALID_ARGUMENT if the data type is unspecified, and the error of UnknownNumber if it is unknown.
// The text lists the types for which `holds` is true: those that the field may have.
absl::StatusOr<DType> CheckDataType(
    std::string_view field, v1::DataType data_type, bool (*holds)(DType) = [](DType) { return true; });

// Returns the names of the data types for which `holds` is true, as in "i8, f16".
std::string NamesWhere(bool (*holds)(DType));

v1::DataType ToProto(DType dtype);

}  // namespace warpline

#endif  // WARPLINE_PROTO_RULES_TENSOR_RULES_H_
