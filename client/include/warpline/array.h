// Arrays on the client's side: views of the caller's memory, and an owner for results.
#ifndef WARPLINE_ARRAY_H_
#define WARPLINE_ARRAY_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kernels/dtype.h"
#include "kernels/shape.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline::client {

struct Operand;
class Region;

// An array: row-major elements, little-endian, in memory that is sent in place.
//
// Without an `owner` the memory belongs to the caller, and a call returns (or its callback runs) only when
// gRPC has let go of it; that can be after the deadline if the server has stopped reading. With an owner the
// memory is kept for as long as needed, and the deadline holds whatever happens. What lies in a region
// (region.h) of the client that is called is not sent at all, and region.h says what holds for it instead.
struct ConstArray {
  DType dtype = DType::kF32;
  Shape shape{};
  // Distance between the starts of rows, in elements; 0 is dense. The padding of the last row is not read.
  std::int64_t row_stride = 0;
  const void* data = nullptr;
  std::shared_ptr<const void> owner = nullptr;

  operator Operand() const;  // NOLINT: wherever an operand is wanted, an array may stand
};

// What a call computes with: an array, field by field as a ConstArray, or a resident tensor (tensor.h), which
// is converted into one.
struct Operand {
  DType dtype = DType::kF32;
  Shape shape{};
  std::int64_t row_stride = 0;
  const void* data = nullptr;
  std::shared_ptr<const void> owner = nullptr;
  // The id of the resident tensor; empty for an array. Nothing but the id is sent. The data type and the
  // shape may be those of the tensor, and the other fields are not read.
  std::string resident{};

  // The array, if it is one.
  ConstArray AsArray() const { return {dtype, shape, row_stride, data, owner}; }
};

inline ConstArray::operator Operand() const { return {dtype, shape, row_stride, data, owner}; }

// Bytes from the first element to the end of the last one. InvalidArgument for a negative size, a row stride
// below the row's length, or a product that does not fit.
absl::StatusOr<std::size_t> ByteSize(const ConstArray& array);

// Where a result is to be written. Null: into new memory. A result larger than `bytes` is an error.
struct Destination {
  // The server writes it there itself if this is memory of a region (region.h).
  void* data = nullptr;
  std::size_t bytes = 0;
  // Set: the result does not come back but stays on the server as a resident tensor, with a lease of this
  // length; zero is the server's default. `data` must be null then.
  std::optional<absl::Duration> keep{};
  // Set: the new memory is in this region, which must be of the client that is called; `data` must be null
  // then. ResourceExhausted if it has no room.
  Region* region = nullptr;
};

// A dense array: in memory of its own, in a Destination's, or in a region (region.h).
class Array {
 public:
  Array() = default;
  // In new memory, not initialised. ResourceExhausted if there is none.
  static absl::StatusOr<Array> Allocate(DType dtype, const Shape& shape, std::size_t bytes);
  // Where the destination says. ResourceExhausted if it is too small, or if there is no memory.
  static absl::StatusOr<Array> For(DType dtype, const Shape& shape, std::size_t bytes,
                                   const Destination& destination);
  // In memory of the caller's, which must outlive the Array, or which `owner` keeps.
  static Array Over(DType dtype, const Shape& shape, void* data, std::size_t bytes,
                    std::shared_ptr<void> owner = nullptr);

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  // As an operand, which shares memory of our own, and borrows the caller's.
  ConstArray View() const { return {dtype_, shape_, 0, data_, owner_}; }

 private:
  DType dtype_ = DType::kF32;
  Shape shape_;
  void* data_ = nullptr;
  std::shared_ptr<void> owner_;  // null if the memory is the caller's
  std::size_t bytes_ = 0;
};

v1::DataType ToProto(DType dtype);
std::optional<DType> FromProto(v1::DataType data_type);
// By the names of kernels/dtype.h ("f32").
std::optional<DType> DTypeNamed(std::string_view name);

}  // namespace warpline::client

#endif  // WARPLINE_ARRAY_H_
