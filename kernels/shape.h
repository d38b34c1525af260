// The sizes of an array's axes: a plain value for host and device code.
#ifndef WARPLINE_KERNELS_SHAPE_H_
#define WARPLINE_KERNELS_SHAPE_H_

#include <cstdint>
#include <initializer_list>
#include <string>

#include "kernels/per_axis.h"

namespace warpline {

// Row-major; dims at and after `rank` are 0. Validation ensures that the product fits in an int64_t.
struct Shape {
  int rank = 0;
  PerAxis<std::int64_t> dims{};

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> sizes) {
    for (std::int64_t size : sizes) dims[rank++] = size;
  }

  std::int64_t operator[](int axis) const { return dims[axis]; }
  std::int64_t& operator[](int axis) { return dims[axis]; }
  void Append(std::int64_t size) { dims[rank++] = size; }

  // Returns the number of elements; 1 for a scalar.
  std::int64_t Count() const {
    std::int64_t count = 1;
    for (int i = 0; i < rank; ++i) count *= dims[i];
    return count;
  }

  friend bool operator==(const Shape&, const Shape&) = default;
};

// The distance in elements between neighbours along each axis.
using Strides = PerAxis<std::int64_t>;

// Returns the size of the innermost axis, which is one row. A scalar is a row of one element.
inline std::int64_t RowSize(const Shape& shape) { return shape.rank == 0 ? 1 : shape[shape.rank - 1]; }

// Returns true if rows that are `row_stride` elements apart are contiguous. 0 means dense.
inline bool HasDenseRows(const Shape& shape, std::int64_t row_stride) {
  return row_stride == 0 || row_stride == RowSize(shape);
}

// Returns the strides of a row-major array whose rows are `row_stride` elements apart; 0: dense.
inline Strides RowMajorStrides(const Shape& shape, std::int64_t row_stride = 0) {
  Strides strides{};
  std::int64_t stride = 1;
  for (int i = shape.rank - 1; i >= 0; --i) {
    strides[i] = stride;
    stride *= i == shape.rank - 1 && row_stride != 0 ? row_stride : shape[i];
  }
  return strides;
}

// Formats the shape, such as "[2,3]".
std::string ToString(const Shape& shape);

}  // namespace warpline

#endif  // WARPLINE_KERNELS_SHAPE_H_
