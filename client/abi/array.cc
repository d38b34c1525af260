#include "client/abi/array.h"

#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/abi/process.h"
#include "kernels/status_macros.h"

namespace warpline::abi {
namespace {

constexpr struct {
  DType dtype;
  DLDataTypeCode code;
} kTypes[] = {
    {DType::kBool, kDLBool},
    {DType::kU8, kDLUInt},
    {DType::kU16, kDLUInt},
    {DType::kU32, kDLUInt},
    {DType::kU64, kDLUInt},
    {DType::kI8, kDLInt},
    {DType::kI16, kDLInt},
    {DType::kI32, kDLInt},
    {DType::kI64, kDLInt},
    {DType::kF16, kDLFloat},
    {DType::kBF16, kDLBfloat},
    {DType::kF32, kDLFloat},
    {DType::kF64, kDLFloat},
    {DType::kC64, kDLComplex},
    {DType::kC128, kDLComplex},
    {DType::kF8E4M3, kDLFloat8_e4m3fn},
    {DType::kF8E5M2, kDLFloat8_e5m2},
};
static_assert(std::size(kTypes) == kAllDTypes.size());

// Copies elements between a dense array and a strided one, from `axis` on. kGather copies into the dense
// array.
enum class Direction : std::uint8_t { kGather, kScatter };
void Copy(Direction direction, const HostArray& array, int axis, std::byte* strided, std::byte*& dense) {
  const auto element = static_cast<std::int64_t>(SizeOf(array.dtype));
  const auto copy = [&](std::int64_t elements) {
    const auto bytes = static_cast<std::size_t>(elements * element);
    if (direction == Direction::kGather) {
      std::memcpy(dense, strided, bytes);
    } else {
      std::memcpy(strided, dense, bytes);
    }
    dense += bytes;
  };
  if (axis == array.shape.rank) return copy(1);
  const std::int64_t size = array.shape[axis], stride = array.strides[axis];
  if (axis == array.shape.rank - 1 && stride == 1) return copy(size);
  for (std::int64_t i = 0; i < size; ++i) {
    Copy(direction, array, axis + 1, strided + i * stride * element, dense);
  }
}

}  // namespace

absl::StatusOr<DType> ToDType(const DLDataType& dtype) {
  for (const auto& type : kTypes) {
    if (type.code == dtype.code && 8 * SizeOf(type.dtype) == dtype.bits && dtype.lanes == 1)
      return type.dtype;
  }
  return absl::InvalidArgumentError(absl::StrCat("DLPack's type of code ", dtype.code, ", ", dtype.bits,
                                                 " bits and ", dtype.lanes, " lanes is none of the API's"));
}

DLDataType ToDlpack(DType dtype) {
  return {.code = static_cast<std::uint8_t>(kTypes[static_cast<std::size_t>(dtype)].code),
          .bits = static_cast<std::uint8_t>(8 * SizeOf(dtype)),
          .lanes = 1};
}

bool HostArray::IsDense() const {
  const Strides dense = RowMajorStrides(shape);
  for (int i = 0; i < shape.rank; ++i) {
    if (shape[i] != 1 && strides[i] != dense[i]) return bytes == 0;
  }
  return true;
}

absl::StatusOr<HostArray> ToHostArray(const DLTensor& tensor, std::string_view name) {
  const auto error = [&](const auto&... text) {
    return absl::InvalidArgumentError(absl::StrCat(std::string(name), ": ", text...));
  };
  if (tensor.device.device_type != kDLCPU && tensor.device.device_type != kDLCUDAHost) {
    return error("the memory of DLPack's device type ", static_cast<int>(tensor.device.device_type),
                 " is not host memory");
  }
  if (tensor.ndim < 0 || tensor.ndim > kMaxRank) {
    return error(tensor.ndim, " axes; the limit is ", kMaxRank);
  }
  HostArray array;
  const absl::StatusOr<DType> dtype = ToDType(tensor.dtype);
  if (!dtype.ok()) return error(std::string(dtype.status().message()));
  array.dtype = *dtype;
  for (int i = 0; i < tensor.ndim; ++i) array.shape.Append(tensor.shape[i]);
  const absl::StatusOr<std::size_t> bytes = client::ByteSize({.dtype = array.dtype, .shape = array.shape});
  if (!bytes.ok()) return error(std::string(bytes.status().message()));
  array.bytes = *bytes;
  array.strides = RowMajorStrides(array.shape);
  for (int i = 0; tensor.strides != nullptr && i < tensor.ndim; ++i) {
    // The stride of an axis with one element is irrelevant, and may be any number.
    if (array.shape[i] != 1) array.strides[i] = tensor.strides[i];
  }
  if (tensor.data == nullptr && array.bytes > 0) return error("there is no data");
  array.data = static_cast<std::byte*>(tensor.data) + (array.bytes > 0 ? tensor.byte_offset : 0);
  return array;
}

absl::Status CheckWritable(const HostArray& array, std::string_view name) {
  for (int i = 0; i < array.shape.rank && array.bytes > 0; ++i) {
    if (array.shape[i] > 1 && array.strides[i] == 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          std::string(name), ": axis ", i, " has the stride 0, so that elements lie on each other"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<client::ConstArray> ToConstArray(const HostArray& array, bool stays) {
  client::ConstArray operand{.dtype = array.dtype, .shape = array.shape, .data = array.data};
  if (array.IsDense()) return operand;
  const int rank = array.shape.rank;
  // Padding is sent too. If there is more padding than elements, a dense copy is cheaper.
  if (rank >= 2 && array.strides[rank - 2] > array.shape[rank - 1] &&
      (stays || array.strides[rank - 2] / 2 <= array.shape[rank - 1])) {
    HostArray padded = array;
    padded.strides = RowMajorStrides(array.shape, array.strides[rank - 2]);
    bool rows_only = true;
    for (int i = 0; i < rank; ++i) {
      rows_only = rows_only && (array.shape[i] == 1 || array.strides[i] == padded.strides[i]);
    }
    if (rows_only) {
      operand.row_stride = array.strides[rank - 2];
      return operand;
    }
  }
  ASSIGN_OR_RETURN(const client::Array copy, client::Array::Allocate(array.dtype, array.shape, array.bytes));
  auto* dense = static_cast<std::byte*>(copy.data());
  Copy(Direction::kGather, array, 0, array.data, dense);
  return copy.View();
}

void Scatter(const void* dense, const HostArray& to) {
  if (to.bytes == 0) return;
  auto* from = const_cast<std::byte*>(static_cast<const std::byte*>(dense));
  Copy(Direction::kScatter, to, 0, to.data, from);
}

View::View(DType dtype, const Shape& shape, void* data)
    : sizes_(shape.dims),
      tensor_{.data = data,
              .device = {.device_type = kDLCPU, .device_id = 0},
              .ndim = shape.rank,
              .dtype = ToDlpack(dtype),
              .shape = sizes_.data(),
              .strides = nullptr,
              .byte_offset = 0} {}

}  // namespace warpline::abi

const DLTensor* warpline_array_view(const warpline_array* array) { return array->view.get(); }

void warpline_array_free(warpline_array* array) { warpline::abi::FreeInItsProcess(array); }
