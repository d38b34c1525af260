#include "kernels/program.h"

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

TEST(PlanMemoryTest, PlacesTensorsAlignedAndApart) {
  const Program program = GemmProgram(1);
  const MemoryPlan plan = PlanMemory(program);
  EXPECT_EQ(plan.tensors[0].offset, 0u);
  EXPECT_EQ(plan.tensors[1].offset, kTensorAlignment);
  EXPECT_EQ(plan.tensors[2].area, Area::kOutput);
  EXPECT_EQ(plan.output_bytes, 60u);
  EXPECT_EQ(plan.scalars[0], 2 * kTensorAlignment);
  EXPECT_EQ(plan.input_bytes, 2 * kTensorAlignment + sizeof(StepScalars));
}

TEST(PlanMemoryTest, PutsIntermediatesIntoScratch) {
  Program program = TransposeProgram({4, 8});
  TransposeProblem back{DType::kF32, {8, 4}, {1, 0}, 0};
  program.tensors.push_back(Tensor(back.OutputShape()));
  program.steps.push_back({.problem = back, .variant = {}, .inputs = {1}, .output = 2, .scalars = {}});
  program.outputs = {2};
  const MemoryPlan plan = PlanMemory(program);
  EXPECT_EQ(plan.tensors[1].area, Area::kScratch);
  EXPECT_EQ(plan.scratch_bytes, kTensorAlignment);
  EXPECT_EQ(plan.tensors[2].area, Area::kOutput);
}

// A chain of `steps` transpositions of one matrix.
Program Chain(int steps) {
  Program program;
  program.tensors.push_back(Tensor({64, 64}));
  program.num_inputs = 1;
  for (int i = 0; i < steps; ++i) {
    const TransposeProblem problem{DType::kF32, {64, 64}, {1, 0}, 0};
    program.tensors.push_back(Tensor({64, 64}));
    program.steps.push_back(
        {.problem = problem, .variant = {}, .inputs = {i}, .output = i + 1, .scalars = {}});
  }
  program.outputs = {steps};
  return program;
}

TEST(PlanMemoryTest, ReusesMemoryWhoseLastReaderHasRun) {
  // While a step runs its operand and its result are needed, whatever came before.
  EXPECT_EQ(PlanMemory(Chain(3)).scratch_bytes, 2 * 64 * 64 * 4u);
  EXPECT_EQ(PlanMemory(Chain(20)).scratch_bytes, 2 * 64 * 64 * 4u);
}

TEST(PlanMemoryTest, KeepsWhatIsReadLater) {
  Program program = Chain(6);
  const MapProblem add = ToMap({.op = PairOp::kAdd, .shape = {64, 64}});
  program.steps.back().problem = add;
  program.steps.back().inputs = {1, 5};  // the first intermediate is read by the last step
  const MemoryPlan plan = PlanMemory(program);
  EXPECT_EQ(plan.scratch_bytes, 3 * 64 * 64 * 4u);
  for (int i : {2, 3, 4, 5}) EXPECT_NE(plan.tensors[i].offset, plan.tensors[1].offset) << i;
}

TEST(PlanMemoryTest, EachResultOfAMapHasItsOwnMemory) {
  Program program = Chain(3);
  program.tensors.push_back(Tensor({64, 64}));
  program.steps[0].further = {4};
  program.steps[2].inputs.push_back(4);  // read by the last step, as the other intermediates are not
  const MemoryPlan plan = PlanMemory(program);
  EXPECT_EQ(plan.tensors[4].area, Area::kScratch);
  EXPECT_EQ(plan.scratch_bytes, 3 * 64 * 64 * 4u);
  for (int i : {1, 2}) EXPECT_NE(plan.tensors[i].offset, plan.tensors[4].offset) << i;
}

TEST(PlanMemoryTest, NoTwoLivingTensorsOverlap) {
  // Steps of pseudo-random operands and sizes; lifetimes are found again by the plainest means.
  std::uint32_t state = 1;
  const auto random = [&](std::uint32_t below) {
    return (state = state * 1664525 + 1013904223) / 65536 % below;
  };
  for (int round = 0; round < 200; ++round) {
    Program program;
    program.tensors.push_back(Tensor({8}));
    program.num_inputs = 1;
    const auto steps = static_cast<int>(2 + random(30));
    for (int i = 0; i < steps; ++i) {
      program.tensors.push_back(Tensor({static_cast<std::int64_t>(random(5000))}));
      const int a = static_cast<int>(random(static_cast<std::uint32_t>(i + 1)));
      const int b = static_cast<int>(random(static_cast<std::uint32_t>(i + 1)));
      program.steps.push_back(
          {.problem = ToMap({}), .variant = {}, .inputs = {a, b}, .output = i + 1, .scalars = {}});
    }
    program.outputs = {steps};
    const MemoryPlan plan = PlanMemory(program);
    const auto last_use = [&](int tensor) {
      int last = tensor - 1;  // the step that writes it
      for (int i = 0; i < steps; ++i) {
        for (int input : program.steps[i].inputs) last = input == tensor ? i : last;
      }
      return last;
    };
    for (int x = 1; x < steps; ++x) {
      ASSERT_EQ(plan.tensors[x].offset % kTensorAlignment, 0u);
      ASSERT_LE(plan.tensors[x].offset + program.tensors[x].bytes, plan.scratch_bytes);
      for (int y = x + 1; y < steps; ++y) {
        if (last_use(x) < y - 1) continue;  // y is written when x is not needed any more
        const std::size_t begin_x = plan.tensors[x].offset, end_x = begin_x + program.tensors[x].bytes;
        const std::size_t begin_y = plan.tensors[y].offset, end_y = begin_y + program.tensors[y].bytes;
        ASSERT_TRUE(end_x <= begin_y || end_y <= begin_x) << round << ": " << x << " and " << y;
      }
    }
  }
}

}  // namespace
}  // namespace warpline
