#include "proto/rules/tensor_rules.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/field_error.h"
#include "kernels/status_macros.h"
#include "proto/rules/known_fields.h"

namespace warpline {
namespace {

std::string Sub(std::string_view field, const char* part) {
  return absl::StrCat(std::string(field), ".", part);
}

// With this limit, the total size of all tensors of a program, each rounded up to its alignment, stays far
// below 2^63.
constexpr std::int64_t kMaxTensorBytes = std::int64_t{1} << 56;

absl::StatusOr<std::int64_t> CheckRowStride(std::string_view field, std::int64_t row_stride,
                                            const Shape& shape) {
  const std::int64_t dense = RowSize(shape);
  if (row_stride == 0) return dense;
  if (row_stride < dense) {
    return FieldError(Sub(field, "row_stride"),
                      absl::StrCat(row_stride, " is less than the last axis, of size ", dense));
  }
  return row_stride;
}

}  // namespace

absl::StatusOr<Layout> CheckLayout(std::string_view field, DType dtype, absl::Span<const std::int64_t> sizes,
                                   std::int64_t row_stride) {
  Layout layout;
  TensorSpec& spec = layout.spec;
  spec.dtype = dtype;
  ASSIGN_OR_RETURN(spec.shape, CheckShape(Sub(field, "shape"), sizes));
  ASSIGN_OR_RETURN(layout.row_stride, CheckRowStride(field, row_stride, spec.shape));
  ASSIGN_OR_RETURN(spec.bytes, StorageBytes(Sub(field, "shape"), dtype, spec.shape, layout.row_stride));
  return layout;
}

absl::StatusOr<std::size_t> StorageBytes(std::string_view field, DType dtype, const Shape& shape,
                                         std::int64_t row_stride) {
  std::int64_t bytes = static_cast<std::int64_t>(SizeOf(dtype));
  bool empty = false;
  for (int i = 0; i < std::max(shape.rank, 1); ++i) {
    const bool is_row = i + 1 >= shape.rank;
    const std::int64_t factor = is_row ? (row_stride != 0 ? row_stride : RowSize(shape)) : shape[i];
    if (factor == 0) empty = true;
    if (factor != 0 && bytes > kMaxTensorBytes / factor) {
      return FieldError(
          field, absl::StrCat(std::string(Name(dtype)), " ", ToString(shape),
                              row_stride == 0 ? "" : absl::StrCat(", rows ", row_stride, " elements apart,"),
                              " takes more than 2^56 bytes"));
    }
    if (factor != 0) bytes *= factor;
  }
  if (empty || RowSize(shape) == 0) return 0;
  const std::int64_t padding = row_stride == 0 ? 0 : row_stride - RowSize(shape);
  return static_cast<std::size_t>(bytes) - static_cast<std::size_t>(padding) * SizeOf(dtype);
}

absl::StatusOr<Shape> CheckShape(std::string_view field, absl::Span<const std::int64_t> sizes) {
  if (sizes.size() > kMaxRank) {
    return FieldError(field, absl::StrCat("rank ", sizes.size(), " is above the limit of ", kMaxRank));
  }
  Shape shape;
  for (std::int64_t size : sizes) {
    if (size < 0) {
      return FieldError(field, absl::StrCat("axis ", shape.rank, " has size ", size, "; the least is 0"));
    }
    shape.Append(size);
  }
  return shape;
}

absl::StatusOr<DType> CheckDataType(std::string_view field, v1::DataType data_type, bool (*holds)(DType)) {
  // Both enumerations list the same types in the same order. The API's has one more value in front.
  if (data_type > v1::DATA_TYPE_UNSPECIFIED && static_cast<std::size_t>(data_type) <= kAllDTypes.size()) {
    return kAllDTypes[data_type - 1];
  }
  if (data_type != v1::DATA_TYPE_UNSPECIFIED) return UnknownNumber(field, data_type, NamesWhere(holds));
  return FieldError(field, absl::StrCat("missing; it must be one of ", NamesWhere(holds)));
}

std::string NamesWhere(bool (*holds)(DType)) {
  std::string names;
  for (DType dtype : kAllDTypes) {
    if (holds(dtype)) absl::StrAppend(&names, names.empty() ? "" : ", ", std::string(Name(dtype)));
  }
  return names;
}

static_assert(static_cast<int>(DType::kBool) + 1 == v1::DATA_TYPE_BOOL);
static_assert(static_cast<int>(DType::kF8E5M2) + 1 == v1::DATA_TYPE_F8E5M2);

v1::DataType ToProto(DType dtype) { return static_cast<v1::DataType>(static_cast<int>(dtype) + 1); }

}  // namespace warpline
