// Programs that several tests run.
#ifndef WARPLINE_TESTS_TESTING_PROGRAMS_H_
#define WARPLINE_TESTS_TESTING_PROGRAMS_H_

#include "kernels/map/pair.h"
#include "kernels/program.h"

namespace warpline {

// y = transpose(2 x) of an f32 matrix of this shape, with the scaled x in scratch memory. The factor is for
// whoever runs the program to write.
inline Program ScaleThenTranspose(const Shape& shape) {
  const TensorSpec x{DType::kF32, shape, static_cast<std::size_t>(shape.Count()) * sizeof(float)};
  Program program;
  program.tensors = {x, x, {DType::kF32, {shape[1], shape[0]}, x.bytes}};
  program.num_inputs = 1;
  program.steps.push_back(
      {.problem = ToMap({.op = PairOp::kScale, .shape = shape, .x_strides = RowMajorStrides(shape)}),
       .variant = {},
       .inputs = {0},
       .output = 1,
       .scalars = {}});
  program.steps.push_back({.problem = TransposeProblem{.shape = shape, .perm = {1, 0}},
                           .variant = {},
                           .inputs = {1},
                           .output = 2,
                           .scalars = {}});
  program.outputs = {2};
  return program;
}

}  // namespace warpline

#endif  // WARPLINE_TESTS_TESTING_PROGRAMS_H_
