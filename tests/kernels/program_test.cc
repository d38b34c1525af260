#include "kernels/program.h"

#include <gtest/gtest.h>

namespace warpline {
namespace {

TensorSpec Tensor(Shape shape, DType dtype = DType::kF32) {
  return {dtype, shape, static_cast<std::size_t>(shape.Count()) * SizeOf(dtype)};
}

Program TransposeProgram(Shape shape) {
  Program program;
  TransposeProblem problem{DType::kF32, shape, {1, 0}};
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
      {.problem = problem, .variant = {}, .inputs = {0, 1}, .output = 2, .scalars = {.alpha_f32 = alpha}});
  program.outputs = {2};
  return program;
}

TEST(SignatureTest, DiffersByShapeAndVariant) {
  const std::string base = Signature(TransposeProgram({2, 3}));
  EXPECT_EQ(base, Signature(TransposeProgram({2, 3})));
  EXPECT_NE(base, Signature(TransposeProgram({3, 2})));
  Program named = TransposeProgram({2, 3});
  named.steps[0].variant = "reference";
  EXPECT_NE(base, Signature(named));
}

TEST(SignatureTest, IgnoresValuesOfScalars) {
  EXPECT_EQ(Signature(GemmProgram(1)), Signature(GemmProgram(2)));
}

TEST(SignatureTest, DiffersByEveryFieldOfAGemm) {
  const std::string base = Signature(GemmProgram(1));
  const auto differs = [&](auto change) {
    Program program = GemmProgram(1);
    change(std::get<GemmProblem>(program.steps[0].problem));
    return Signature(program) != base;
  };
  EXPECT_TRUE(differs([](GemmProblem& p) { p.lda = 8; }));
  EXPECT_TRUE(differs([](GemmProblem& p) { p.trans_a = true; }));
  EXPECT_TRUE(differs([](GemmProblem& p) { p.trans_b = true; }));
  EXPECT_TRUE(differs([](GemmProblem& p) { p.precision = Precision::kTf32; }));
  EXPECT_TRUE(differs([](GemmProblem& p) { p.batch = 2; }));
}

TEST(PlanMemoryTest, PlacesTensorsAlignedAndApart) {
  const Program program = GemmProgram(1);
  const MemoryPlan plan = PlanMemory(program);
  EXPECT_EQ(plan.tensors[0].offset, 0u);
  EXPECT_EQ(plan.tensors[1].offset, kTensorAlignment);
  EXPECT_EQ(plan.tensors[2].region, Region::kOutput);
  EXPECT_EQ(plan.output_bytes, 60u);
  EXPECT_EQ(plan.scalars[0], 2 * kTensorAlignment);
  EXPECT_EQ(plan.input_bytes, 2 * kTensorAlignment + sizeof(GemmScalars));
}

TEST(PlanMemoryTest, PutsIntermediatesIntoScratch) {
  Program program = TransposeProgram({4, 8});
  TransposeProblem back{DType::kF32, {8, 4}, {1, 0}};
  program.tensors.push_back(Tensor(back.OutputShape()));
  program.steps.push_back({.problem = back, .variant = {}, .inputs = {1}, .output = 2, .scalars = {}});
  program.outputs = {2};
  const MemoryPlan plan = PlanMemory(program);
  EXPECT_EQ(plan.tensors[1].region, Region::kScratch);
  EXPECT_EQ(plan.scratch_bytes, 128u);
  EXPECT_EQ(plan.tensors[2].region, Region::kOutput);
}

}  // namespace
}  // namespace warpline
