// Arrays of the C interface: converts between DLPack's description and the library's.
#ifndef WARPLINE_CLIENT_ABI_ARRAY_H_
#define WARPLINE_CLIENT_ABI_ARRAY_H_

#include <unistd.h>

#include <cstdint>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/dtype.h"
#include "kernels/shape.h"
#include "warpline/array.h"
#include "warpline/warpline.h"

namespace warpline::abi {

// Returns INVALID_ARGUMENT for a type that the API lacks.
absl::StatusOr<DType> ToDType(const DLDataType& dtype);
DLDataType ToDlpack(DType dtype);

// The type and shape of a tensor in host memory. Conversion returns INVALID_ARGUMENT, with `name`, for
// another device, a type that the API lacks, more than 8 axes, and sizes that are negative or too large.
struct HostArray {
  DType dtype = DType::kF32;
  Shape shape{};
  Strides strides{};
  std::byte* data = nullptr;
  std::size_t bytes = 0;  // of a dense array of this shape

  bool IsDense() const;
};
absl::StatusOr<HostArray> ToHostArray(const DLTensor& tensor, std::string_view name);

// Returns INVALID_ARGUMENT, with `name`, if neighbours along an axis are the same element: results cannot be
// written there.
absl::Status CheckWritable(const HostArray& array, std::string_view name);

// Returns the array as an operand. If anything but its rows is padded, the operand owns a dense copy.
// `stays`: the array is not sent, so its padding costs nothing.
absl::StatusOr<client::ConstArray> ToConstArray(const HostArray& array, bool stays = false);

// Copies elements from a dense array of the same type and shape.
void Scatter(const void* dense, const HostArray& to);

// A description that owns its sizes. It cannot be moved or copied, because it points to itself.
class View {
 public:
  View(DType dtype, const Shape& shape, void* data);
  View(const View&) = delete;
  View& operator=(const View&) = delete;

  const DLTensor* get() const { return &tensor_; }

 private:
  PerAxis<std::int64_t> sizes_;
  DLTensor tensor_;
};

}  // namespace warpline::abi

struct warpline_array {
  explicit warpline_array(warpline::client::Array of)
      : array(std::move(of)), view(array.dtype(), array.shape(), array.data()) {}

  const pid_t process = getpid();
  const warpline::client::Array array;
  const warpline::abi::View view;
};

#endif  // WARPLINE_CLIENT_ABI_ARRAY_H_
