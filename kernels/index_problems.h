// Problems whose operands are places in other operands.
#ifndef WARPLINE_KERNELS_INDEX_PROBLEMS_H_
#define WARPLINE_KERNELS_INDEX_PROBLEMS_H_

#include <cstdint>

#include "kernels/dtype.h"
#include "kernels/shape.h"

namespace warpline {

// Every element of y is an element of x, whose place along one axis of x an index says: for place p of y it
// is x[x_strides . p + axis_stride * index], with index = indices[index_strides . p]. An index below 0 counts
// from the end of the axis. One outside of [-axis_size, axis_size) is reported (Operands::bad_index), and the
// results then mean nothing.
struct TakeProblem {
  DType dtype = DType::kF32;        // of x and y, of any kind: elements are moved
  DType index_dtype = DType::kI64;  // i32 or i64
  Shape shape;                      // of y, which is dense
  // Elements from one place of y to the next: 0 along axes that x, or that the indices, do not have.
  Strides x_strides{}, index_strides{};
  std::int64_t axis_size = 0, axis_stride = 0;  // of the axis of x

  friend bool operator==(const TakeProblem&, const TakeProblem&) = default;
};

// y is x, but for the elements that indices along one axis name: they are values. Where several indices name
// one element, the value at the last place of `index_shape` in row-major order is kept. Indices are those of
// TakeProblem.
struct PutProblem {
  DType dtype = DType::kF32;
  DType index_dtype = DType::kI64;
  Shape shape;        // of x and y, which are dense
  int axis = 0;       // of x
  Shape index_shape;  // of the indices and values: that of x but for the axis
  Strides index_strides{}, value_strides{};

  friend bool operator==(const PutProblem&, const PutProblem&) = default;
};

// The rows of a dense matrix x for which a mask, of one byte each, is not 0, in their order. The second
// result is their count, as i64. The first has room for all rows; what lies behind those that are there means
// nothing.
struct CompressProblem {
  DType dtype = DType::kF32;
  std::int64_t rows = 1, width = 1;

  friend bool operator==(const CompressProblem&, const CompressProblem&) = default;
};

}  // namespace warpline

#endif  // WARPLINE_KERNELS_INDEX_PROBLEMS_H_
