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

// A read-only view of an array: row-major, little-endian elements in memory that is sent in place.
//
// If `owner` is null, the memory belongs to the caller. A call then returns (or its callback runs) only when
// gRPC has let go of the memory. That can be after the deadline if the server has stopped reading. If `owner`
// is set, it keeps the memory for as long as needed, and the deadline always holds. Memory in a region
// (region.h) of the client that is called is not sent at all; the rules in region.h apply to it instead.
struct ConstArray {
  DType dtype = DType::kF32;
  Shape shape{};
  // Distance between the starts of rows, in elements; 0 is dense. The padding of the last row is not read.
  std::int64_t row_stride = 0;
  const void* data = nullptr;
  std::shared_ptr<const void> owner = nullptr;

  operator Operand() const;  // NOLINT: an array can be used wherever an operand is expected
};

// An operand of a call: an array, or a resident tensor (tensor.h). A ConstArray converts to it field by
// field. A Tensor converts to it too.
struct Operand {
  DType dtype = DType::kF32;
  Shape shape{};
  std::int64_t row_stride = 0;
  const void* data = nullptr;
  std::shared_ptr<const void> owner = nullptr;
  // The id of the resident tensor; empty for an array. If `shape` is set, `dtype` and `shape` must be
  // those of the tensor: the call is checked with them before it is sent. Of the other fields, only `device`
  // is read.
  std::string resident{};
  // The number of the upload if the client uploads a large array. Only the client sets it.
  std::optional<int> upload{};

  // Returns true if the elements travel in the message of the call, or in shared memory.
  bool travels_along() const { return resident.empty() && !upload.has_value(); }
  // Returns the array. Only valid if this operand is an array.
  ConstArray AsArray() const { return {dtype, shape, row_stride, data, owner}; }
};

inline ConstArray::operator Operand() const { return {dtype, shape, row_stride, data, owner}; }

// Returns the number of bytes from the first element to the end of the last one. InvalidArgument for a
// negative size, a row stride below the row's length, or a product that does not fit.
absl::StatusOr<std::size_t> ByteSize(const ConstArray& array);

// The place where a result is written. By default it is new memory. A result larger than `bytes` is an error.
struct Destination {
  // Memory for the result; null for new memory. If it is memory of a region (region.h), the server itself
  // writes the result there.
  void* data = nullptr;
  std::size_t bytes = 0;
  // If set, the result does not come back. It stays on the server as a resident tensor, with a lease of this
  // length; zero is the server's default. `data` must then be null.
  std::optional<absl::Duration> keep{};
  // If set, the new memory is in this region, which must belong to the client that is called. `data` must
  // then be null. ResourceExhausted if the region has no room.
  Region* region = nullptr;
  // The client fetches the result in ranges, and then drops the tensor. Only the client sets this.
  bool streamed = false;
};

// A dense array in memory of its own, in the memory of a Destination, or in a region (region.h).
class Array {
 public:
  Array() = default;
  // Allocates new memory, which is not initialised. ResourceExhausted if the allocation fails.
  static absl::StatusOr<Array> Allocate(DType dtype, const Shape& shape, std::size_t bytes);
  // Places the array where the destination says. ResourceExhausted if the destination is too small, or if
  // there is no memory.
  static absl::StatusOr<Array> For(DType dtype, const Shape& shape, std::size_t bytes,
                                   const Destination& destination);
  // Wraps memory of the caller. The memory must outlive the Array, unless `owner` keeps it.
  static Array Over(DType dtype, const Shape& shape, void* data, std::size_t bytes,
                    std::shared_ptr<void> owner = nullptr);

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  // Returns a view for use as an operand. It shares memory that the Array owns, and borrows memory of the
  // caller.
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
// Returns the type with this name in kernels/dtype.h ("f32"); nothing if there is none.
std::optional<DType> DTypeNamed(std::string_view name);

}  // namespace warpline::client

#endif  // WARPLINE_ARRAY_H_
