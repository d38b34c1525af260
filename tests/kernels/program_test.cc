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
    return Signature(program);
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

// The signature of a program of one step over one tensor.
std::string SignatureOf(const Problem& problem) {
  Program program = TransposeProgram({2, 3});
  program.steps[0].problem = problem;
  return Signature(program);
}

TEST(SignatureTest, DiffersByEveryFieldOfAReduction) {
  const ReduceProblem base{ReduceOp::kVar, DType::kF32, {2, 3}, 1, {}, 0, 0};
  const auto differs = [&](auto change) {
    ReduceProblem problem = base;
    change(problem);
    return SignatureOf(problem) != SignatureOf(base);
  };
  EXPECT_TRUE(differs([](ReduceProblem& p) { p.op = ReduceOp::kStd; }));
  EXPECT_TRUE(differs([](ReduceProblem& p) { p.dtype = DType::kI32; }));
  EXPECT_TRUE(differs([](ReduceProblem& p) { p.shape = {3, 2}; }));
  EXPECT_TRUE(differs([](ReduceProblem& p) { p.axes_mask = 2; }));
  EXPECT_TRUE(differs([](ReduceProblem& p) { p.out_dtype = DType::kF64; }));
  EXPECT_TRUE(differs([](ReduceProblem& p) { p.row_stride = 5; }));
  EXPECT_TRUE(differs([](ReduceProblem& p) { p.ddof = 1; }));
}

TEST(SignatureTest, DiffersByEveryFieldOfAMap) {
  const MapProblem base =
      ToMap({.op = PairOp::kAdd, .shape = {2, 3}, .x_strides = {3, 1}, .y_strides = {3, 1}});
  const auto differs = [&](auto change) {
    MapProblem problem = base;
    change(problem);
    return SignatureOf(problem) != SignatureOf(base);
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

TEST(SignatureTest, DiffersByTheStrideOfATransposition) {
  EXPECT_NE(SignatureOf(TransposeProblem{DType::kF32, {2, 3}, {1, 0}, 0}),
            SignatureOf(TransposeProblem{DType::kF32, {2, 3}, {1, 0}, 5}));
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
