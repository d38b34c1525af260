#include "server/device/cuda_plan.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "kernels/align.h"
#include "server/plan/address_table.h"
#include "tests/testing/programs.h"

namespace warpline {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr CudaKind kH200{.traits = {.compute_capability = 90, .multiprocessors = 132, .has_cublaslt = true},
                         .uses_host_pointers = true};

Program OneStep(Problem problem, const Shape& in, const Shape& out, std::size_t in_offset = 0) {
  const DType dtype = DTypeOf(problem);
  const auto bytes = [&](const Shape& shape) {
    return static_cast<std::size_t>(shape.Count()) * SizeOf(dtype);
  };
  Program program;
  program.tensors = {{dtype, in, bytes(in) + in_offset}, {dtype, out, bytes(out)}};
  program.num_inputs = 1;
  program.steps.push_back(
      {.problem = std::move(problem), .variant = {}, .inputs = {0}, .output = 1, .scalars = {}});
  if (in_offset > 0) program.steps[0].input_offsets = {in_offset};
  program.outputs = {1};
  return program;
}

Program Transpose(std::int64_t rows, std::int64_t cols, DType dtype = DType::kF32, std::size_t offset = 0) {
  return OneStep(TransposeProblem{.dtype = dtype, .shape = {rows, cols}, .perm = {1, 0}}, {rows, cols},
                 {cols, rows}, offset);
}

std::unique_ptr<CudaProgram> Compile(const Program& program, const CudaPlanOptions& options,
                                     std::vector<CudaKind> kinds = {kH200}) {
  return CompileForCuda(program, PlanMemory(program), kinds, /*devices=*/2, options);
}

TEST(CudaPlanTest, AnOffsetOfAnOperandCountsForTheChoice) {
  const CudaPlanOptions options{.lane_bytes = 64 * kMiB};
  const auto name = [&](std::size_t offset) {
    const auto compiled = Compile(Transpose(1056, 1056, DType::kF32, offset), options);
    return std::get<CudaChoice<TransposeProblem>>(compiled->plans[0].steps[0]).name();
  };
  const Problem problem = Transpose(1056, 1056).steps[0].problem;
  Operands shifted;
  shifted.in[0] = reinterpret_cast<const void*>(4);
  const auto& transpose = std::get<TransposeProblem>(problem);
  EXPECT_EQ(name(0), Choose(transpose, {}, kH200.traits, Operands()).name());
  EXPECT_EQ(name(4), Choose(transpose, {}, kH200.traits, shifted).name());
  EXPECT_NE(name(0), name(4));
}

TEST(CudaPlanTest, WorkspaceIsThatOfTheKernelThatIsChosen) {
  // Sorting by radix would take another copy of the keys.
  const SortProblem sort{.dtype = DType::kF32, .rows = 1000, .count = 64, .taken = 64};
  const Program program = OneStep(sort, {1000, 64}, {1000, 64});
  const MemoryPlan memory = PlanMemory(program);
  const auto row = Choose(sort, {}, kH200.traits, Operands()).row;
  std::size_t most = 0;
  for (const auto& other : CudaTable(sort)) {
    if (Suits(other, sort, kH200.traits)) most = std::max(most, other.workspace_bytes(sort, kH200.traits));
  }
  const std::size_t needed = BlockLayout(memory).workspace + row->workspace_bytes(sort, kH200.traits);
  ASSERT_LT(row->workspace_bytes(sort, kH200.traits), most);
  EXPECT_EQ(Compile(program, {.lane_bytes = needed})->device_bytes, 0u);
  EXPECT_GE(Compile(program, {.lane_bytes = needed - 1})->device_bytes, needed);
}

TEST(CudaPlanTest, KindsOfGpusHaveChoicesOfTheirOwn) {
  const CudaKind without{.traits = {.compute_capability = 80, .multiprocessors = 108}};
  const GemmProblem gemm{
      .dtype = DType::kBF16, .m = 512, .n = 512, .k = 512, .lda = 512, .ldb = 512, .ldc = 512};
  Program program = OneStep(gemm, {512, 512}, {512, 512});
  program.steps[0].inputs = {0, 0};
  const auto compiled = Compile(program, {.lane_bytes = 64 * kMiB}, {kH200, without});
  const auto name = [&](std::size_t kind) {
    return std::get<CudaChoice<GemmProblem>>(compiled->plans[kind].steps[0]).name();
  };
  EXPECT_EQ(name(0), "cublas");
  EXPECT_NE(name(1), "cublas");
}

TEST(CudaPlanTest, KindsAreToldApartByAllThatCounts) {
  EXPECT_EQ(kH200, CudaKind(kH200));
  const auto differs = [](auto change) {
    CudaKind kind = kH200;
    change(kind);
    return !(kind == kH200);
  };
  EXPECT_TRUE(differs([](CudaKind& kind) { kind.traits.compute_capability = 80; }));
  EXPECT_TRUE(differs([](CudaKind& kind) { kind.traits.multiprocessors = 120; }));
  EXPECT_TRUE(differs([](CudaKind& kind) { kind.traits.has_cublaslt = false; }));
  EXPECT_TRUE(differs([](CudaKind& kind) { kind.traits.code_capability = 80; }));
  EXPECT_TRUE(differs([](CudaKind& kind) { kind.uses_host_pointers = false; }));
}

TEST(CudaPlanTest, EachPieceHasTheChoiceForItsProblem) {
  const auto compiled = Compile(Transpose(8192, 8000), {.lane_bytes = 64 * kMiB});
  const CudaPlan& plan = compiled->plans[0];
  ASSERT_EQ(plan.alone, Path::kBlocks);
  ASSERT_TRUE(plan.cutting.has_value());
  ASSERT_EQ(plan.cut_of.size(), plan.cutting->pieces.size());
  EXPECT_LT(plan.cuts.size(), plan.cut_of.size() / 2) << "pieces of one size share a choice";
  for (std::size_t i = 0; i < plan.cut_of.size(); ++i) {
    EXPECT_EQ(plan.ChoiceOfPiece(i).name(),
              Choose(plan.cutting->pieces[i].problem, {}, kH200.traits, Operands()).name());
  }
}

TEST(CudaPlanTest, ANameThatCannotRunTheStepIsLeftToTheLaunch) {
  Program program = Transpose(33, 31);
  program.steps[0].variant = "padded_vectorized";
  const auto compiled = Compile(program, {.lane_bytes = 64 * kMiB});
  EXPECT_EQ(std::get<CudaChoice<TransposeProblem>>(compiled->plans[0].steps[0]).row, nullptr);
}

TEST(CudaPlanTest, NoTwoProgramsHaveOneId) {
  const auto one = Compile(Transpose(2, 3), {}), other = Compile(Transpose(2, 3), {});
  EXPECT_NE(one->id(), other->id());
  EXPECT_GT(one->bytes(), sizeof(CudaProgram));
}

}  // namespace
}  // namespace warpline
