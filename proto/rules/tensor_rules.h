// The rules for the types and shapes of tensors, whatever the operation. Pure.
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

// A data type, a shape and a row stride that agree with one another.
struct Layout {
  TensorSpec spec;
  std::int64_t row_stride = 0;  // never the 0 that means dense
};

// The layout of an array with these sizes. `field` is the tensor's name; errors name what is wrong inside it
// ("a.shape").
absl::StatusOr<Layout> CheckLayout(std::string_view field, DType dtype, absl::Span<const std::int64_t> sizes,
                                   std::int64_t row_stride);

// Bytes from the first element to the end of the last one of a shape whose rows are `row_stride` elements
// apart (0: dense). The last row needs no padding. Fails unless the product of all sizes that are not zero,
// the row stride in place of the last, in bytes, is at most 2^56. Then so is the product of any selection of
// them.
absl::StatusOr<std::size_t> StorageBytes(std::string_view field, DType dtype, const Shape& shape,
                                         std::int64_t row_stride);

// A shape of at most kMaxRank axes, none of them negative.
absl::StatusOr<Shape> CheckShape(std::string_view field, absl::Span<const std::int64_t> sizes);

// Returns INVALID_ARGUMENT if the number stands for no data type or is unspecified, with the names of those
// for which `holds` is true: the ones that the field may have.
absl::StatusOr<DType> CheckDataType(
    std::string_view field, v1::DataType data_type, bool (*holds)(DType) = [](DType) { return true; });

// The names of the data types for which `holds` is true, as in "i8, f16".
std::string NamesWhere(bool (*holds)(DType));

v1::DataType ToProto(DType dtype);

}  // namespace warpline

#endif  // WARPLINE_PROTO_RULES_TENSOR_RULES_H_
