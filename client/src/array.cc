#include "warpline/array.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "warpline/region.h"

namespace warpline::client {

absl::StatusOr<std::size_t> ByteSize(const ConstArray& array) {
  const Shape& shape = array.shape;
  std::int64_t bytes = SizeOf(array.dtype);
  bool overflow = false, empty = false;
  for (int axis = 0; axis < shape.rank; ++axis) {
    std::int64_t size = shape[axis];
    if (size < 0) return absl::InvalidArgumentError(absl::StrCat("axis ", axis, " has the size ", size));
    empty = empty || size == 0;
    if (axis == shape.rank - 1 && array.row_stride != 0) {
      if (array.row_stride < size) {
        return absl::InvalidArgumentError(
            absl::StrCat("a row stride of ", array.row_stride, " is below the ", size, " elements of a row"));
      }
      size = array.row_stride;
    }
    // An empty array has no bytes, but its other sizes must not hide that their product is absurd.
    if (size != 0) overflow = overflow || __builtin_mul_overflow(bytes, size, &bytes);
  }
  if (overflow) return absl::InvalidArgumentError("the sizes multiply to more than 2^63 bytes");
  if (shape.rank == 0 && array.row_stride != 0) {
    return absl::InvalidArgumentError("a scalar has no row stride");
  }
  if (empty) return 0;
  // The last row need not have padding behind it.
  if (array.row_stride != 0) bytes -= (array.row_stride - shape[shape.rank - 1]) * SizeOf(array.dtype);
  return static_cast<std::size_t>(bytes);
}

absl::StatusOr<Array> Array::Allocate(DType dtype, const Shape& shape, std::size_t bytes) {
  // malloc, not new[]: elements are written once, by the copy out of the response.
  std::shared_ptr<void> owner(std::malloc(bytes == 0 ? 1 : bytes), std::free);
  if (owner == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat("no memory for a result of ", bytes, " bytes"));
  }
  void* const data = owner.get();
  return Over(dtype, shape, data, bytes, std::move(owner));
}

absl::StatusOr<Array> Array::For(DType dtype, const Shape& shape, std::size_t bytes,
                                 const Destination& destination) {
  if (destination.region != nullptr) return destination.region->Allocate(dtype, shape);
  if (destination.data == nullptr) return Allocate(dtype, shape, bytes);
  if (destination.bytes >= bytes) return Over(dtype, shape, destination.data, bytes);
  return absl::ResourceExhaustedError(
      absl::StrCat("the result has ", bytes, " bytes; the destination has ", destination.bytes));
}

Array Array::Over(DType dtype, const Shape& shape, void* data, std::size_t bytes,
                  std::shared_ptr<void> owner) {
  Array array;
  array.dtype_ = dtype;
  array.shape_ = shape;
  array.data_ = data;
  array.owner_ = std::move(owner);
  array.bytes_ = bytes;
  return array;
}

// Both enumerations list the same types in the same order. The API's has one more value in front.
static_assert(static_cast<int>(DType::kBool) + 1 == v1::DATA_TYPE_BOOL);
static_assert(static_cast<int>(DType::kF8E5M2) + 1 == v1::DATA_TYPE_F8E5M2);

v1::DataType ToProto(DType dtype) { return static_cast<v1::DataType>(static_cast<int>(dtype) + 1); }

std::optional<DType> FromProto(v1::DataType data_type) {
  for (DType dtype : kAllDTypes) {
    if (ToProto(dtype) == data_type) return dtype;
  }
  return std::nullopt;
}

std::optional<DType> DTypeNamed(std::string_view name) {
  for (DType dtype : kAllDTypes) {
    if (Name(dtype) == name) return dtype;
  }
  return std::nullopt;
}

}  // namespace warpline::client
