#include "tests/testing/program_bytes.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "kernels/map/pair.h"

namespace warpline {
namespace {

TensorSpec Tensor(Shape shape, DType dtype = DType::kF32) {
  return {dtype, shape, static_cast<std::size_t>(shape.Count()) * SizeOf(dtype)};
}

Program TransposeProgram(Shape shape) {
  Program program;
  TransposeProblem problem{DType::kF32, shape, {1, 0}, 0};
  program.tensors = {Tensor(shape), Tensor(problem.OutputShape())};
  program.num_inputs = 1;
  program.steps.push_back({.problem = problem, .variant = {}, .inputs = {0}, .output = 1, .scalars = {}});
  program.outputs = {1};
  return program;
}

Program GemmProgram(float alpha) {
  Program program;
  GemmProblem problem{.m = 3, .n = 5, .k = 4, .lda = 4, .ldb = 5, .ldc = 5};
  program.tensors = {Tensor({3, 4}), Tensor({4, 5}), Tensor({3, 5})};
  program.num_inputs = 2;
  program.steps.push_back(
      {.problem = problem, .variant = {}, .inputs = {0, 1}, .output = 2, .scalars = {{.alpha_f32 = alpha}}});
  program.outputs = {2};
  return program;
}

TEST(ProgramBytesTest, DiffersByShapeAndVariant) {
  const std::string base = ProgramBytes(TransposeProgram({2, 3}));
  EXPECT_EQ(base, ProgramBytes(TransposeProgram({2, 3})));
  EXPECT_NE(base, ProgramBytes(TransposeProgram({3, 2})));
  Program named = TransposeProgram({2, 3});
  named.steps[0].variant = "reference";
  EXPECT_NE(base, ProgramBytes(named));
}

TEST(ProgramBytesTest, IgnoresValuesOfScalars) {
  EXPECT_EQ(ProgramBytes(GemmProgram(1)), ProgramBytes(GemmProgram(2)));
}

TEST(ProgramBytesTest, DiffersByEveryFieldOfAGemm) {
  const std::string base = ProgramBytes(GemmProgram(1));
  const auto differs = [&](auto change) {
    Program program = GemmProgram(1);
    change(std::get<GemmProblem>(program.steps[0].problem));
    return ProgramBytes(program) != base;
  };
  for (std::int64_t GemmProblem::*size : {&GemmProblem::m, &GemmProblem::n, &GemmProblem::k,
                                          &GemmProblem::lda, &GemmProblem::ldb, &GemmProblem::ldc}) {
    EXPECT_TRUE(differs([size](GemmProblem& p) { p.*size += 8; }));
  }
  EXPECT_TRUE(differs([](GemmProblem& p) { p.dtype = DType::kF16; }));
  EXPECT_TRUE(differs([](GemmProblem& p) { p.has_c = true; }));
  // Batches of two that differ by what is broadcast.
  const auto batch = [](std::int64_t a, std::int64_t b, std::int64_t c) {
    Program program = GemmProgram(1);
    std::get<GemmProblem>(program.steps[0].problem).batch.Append(2, a, b, c);
    return ProgramBytes(program);
  };
  EXPECT_NE(batch(1, 1, 1), batch(0, 1, 1));
  EXPECT_NE(batch(1, 1, 1), batch(1, 0, 1));
  EXPECT_NE(batch(1, 1, 1), batch(1, 1, 0));
  EXPECT_TRUE(differs([](GemmProblem& p) { p.out_dtype = DType::kF16; }));
  EXPECT_TRUE(differs([](GemmProblem& p) { p.has_bias = true; }));
  EXPECT_TRUE(differs([](GemmProblem& p) { p.activation = Activation::kRelu; }));
  EXPECT_TRUE(differs([](GemmProblem& p) { p.trans_a = true; }));
  EXPECT_TRUE(differs([](GemmProblem& p) { p.trans_b = true; }));
  EXPECT_TRUE(differs([](GemmProblem& p) { p.precision = Precision::kTf32; }));
  EXPECT_TRUE(differs([](GemmProblem& p) { p.batch = GemmBatch::Dense(2); }));
}

// The bytes of a program of one step over one tensor.
std::string BytesOfStep(const Problem& problem) {
  Program program = TransposeProgram({2, 3});
  program.steps[0].problem = problem;
  return ProgramBytes(program);
}

TEST(ProgramBytesTest, DiffersByEveryFieldOfAReduction) {
  const ReduceProblem base{ReduceOp::kVar, DType::kF32, {2, 3}, 1, {}, 0, 0};
  const auto differs = [&](auto change) {
    ReduceProblem problem = base;
    change(problem);
    return BytesOfStep(problem) != BytesOfStep(base);
  };
  EXPECT_TRUE(differs([](ReduceProblem& p) { p.op = ReduceOp::kStd; }));
  EXPECT_TRUE(differs([](ReduceProblem& p) { p.dtype = DType::kI32; }));
  EXPECT_TRUE(differs([](ReduceProblem& p) { p.shape = {3, 2}; }));
  EXPECT_TRUE(differs([](ReduceProblem& p) { p.axes_mask = 2; }));
  EXPECT_TRUE(differs([](ReduceProblem& p) { p.out_dtype = DType::kF64; }));
  EXPECT_TRUE(differs([](ReduceProblem& p) { p.row_stride = 5; }));
  EXPECT_TRUE(differs([](ReduceProblem& p) { p.ddof = 1; }));
}

TEST(ProgramBytesTest, DiffersByEveryFieldOfAMap) {
  const MapProblem base =
      ToMap({.op = PairOp::kAdd, .shape = {2, 3}, .x_strides = {3, 1}, .y_strides = {3, 1}});
  const auto differs = [&](auto change) {
    MapProblem problem = base;
    change(problem);
    return BytesOfStep(problem) != BytesOfStep(base);
  };
  EXPECT_TRUE(differs([](MapProblem& p) { p.inputs[0].dtype = DType::kF16; }));
  EXPECT_TRUE(differs([](MapProblem& p) { p.inputs[1].strides[0] = 0; }));
  EXPECT_TRUE(differs([](MapProblem& p) { p.nodes[0].op = MapOp::kSubtract; }));
  EXPECT_TRUE(differs([](MapProblem& p) { p.nodes[0].dtype = DType::kF16; }));
  EXPECT_TRUE(differs([](MapProblem& p) { p.nodes[0].operands = {1, 0, 0}; }));
  EXPECT_TRUE(differs([](MapProblem& p) { p.shape = {3, 2}; }));
  EXPECT_TRUE(differs([](MapProblem& p) { p.out_strides = Strides{6, 2}; }));
  EXPECT_FALSE(differs([](MapProblem& p) { p.out_strides = Strides{3, 1}; }));
  EXPECT_TRUE(differs([](MapProblem& p) { p.further = {0}; }));
}

TEST(ProgramBytesTest, DiffersByTheStrideOfATransposition) {
  EXPECT_NE(BytesOfStep(TransposeProblem{DType::kF32, {2, 3}, {1, 0}, 0}),
            BytesOfStep(TransposeProblem{DType::kF32, {2, 3}, {1, 0}, 5}));
}

}  // namespace
}  // namespace warpline
