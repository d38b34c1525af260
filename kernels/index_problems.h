// Problems in which some operands are indices into other operands.
#ifndef WARPLINE_KERNELS_INDEX_PROBLEMS_H_
#define WARPLINE_KERNELS_INDEX_PROBLEMS_H_

#include <cstdint>

#include "kernels/dtype.h"
#include "kernels/shape.h"

namespace warpline {

// Every element of y is an element of x. An index gives its position along one axis of x: for position p of y
// it is x[x_strides . p + axis_stride * index], with index = indices[index_strides . p]. A negative index
// counts from the end of the axis. An index outside of [-axis_size, axis_size) is reported
// (Operands::bad_index), and then the results are undefined.
struct TakeProblem {
  DType dtype = DType::kF32;        // of x and y, any type: elements are only moved
  DType index_dtype = DType::kI64;  // i32 or i64
  Shape shape;                      // of y, which is dense
  // Strides along the axes of y, in elements. 0 along axes that x, or the indices, do not have.
  Strides x_strides{}, index_strides{};
  std::int64_t axis_size = 0, axis_stride = 0;  // of the axis of x

  friend bool operator==(const TakeProblem&, const TakeProblem&) = default;
};

// y is a copy of x, but elements that indices along one axis select are replaced by values. If several
// indices select one element, the last one counts, by its position in `index_shape` in row-major order.
// Indices are as in TakeProblem.
struct PutProblem {
  DType dtype = DType::kF32;
  DType index_dtype = DType::kI64;
  Shape shape;        // of x and y, which are dense
  int axis = 0;       // of x
  Shape index_shape;  // of the indices and values: that of x except along the axis
  Strides index_strides{}, value_strides{};

  friend bool operator==(const PutProblem&, const PutProblem&) = default;
};

// Selects the rows of a dense matrix x for which a mask is not 0, in order. The mask has one byte per row.
// The second result is the number of selected rows, as i64. The first result has room for all rows; the rows
// after the selected ones are undefined.
struct CompressProblem {
  DType dtype = DType::kF32;
  std::int64_t rows = 1, width = 1;

  friend bool operator==(const CompressProblem&, const CompressProblem&) = default;
};

}  // namespace warpline

#endif  // WARPLINE_KERNELS_INDEX_PROBLEMS_H_
