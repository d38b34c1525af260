#include "server/device/choose_path.h"

#include <gtest/gtest.h>

#include "kernels/map/pair.h"
#include "kernels/reads_twice.h"

namespace warpline {
namespace {

Program OneStep(Problem problem, std::size_t in_bytes, std::size_t out_bytes) {
  Program program;
  program.tensors = {{DTypeOf(problem), {}, in_bytes}, {DTypeOf(problem), {}, out_bytes}};
  program.num_inputs = 1;
  program.steps.push_back(
      {.problem = std::move(problem), .variant = {}, .inputs = {0}, .output = 1, .scalars = {}});
  program.outputs = {1};
  return program;
}

Program Transpose(std::int64_t rows, std::int64_t cols) {
  const auto bytes = static_cast<std::size_t>(rows * cols) * 4;
  return OneStep(TransposeProblem{.shape = {rows, cols}, .perm = {1, 0}}, bytes, bytes);
}

Path Choose(const Program& program, bool alone, bool can_map = true, bool can_cut = true) {
  return ChoosePath(program, PlanMemory(program), {.alone = alone, .can_map = can_map, .can_cut = can_cut},
                    {});
}

TEST(ChoosePathTest, SmallProgramsRunOnTheirSlots) {
  for (std::int64_t side : {1, 32, 256}) {
    EXPECT_EQ(Choose(Transpose(side, side), /*alone=*/true), Path::kMapped);
    EXPECT_EQ(Choose(Transpose(side, side), /*alone=*/false), Path::kMapped);
    EXPECT_EQ(Choose(Transpose(side, side), /*alone=*/true, /*can_map=*/false), Path::kCopied);
  }
}

TEST(ChoosePathTest, LargerOnesOnlyAlone) {
  EXPECT_EQ(Choose(Transpose(512, 512), /*alone=*/true), Path::kMapped);
  EXPECT_EQ(Choose(Transpose(512, 512), /*alone=*/false), Path::kCopied);
}

TEST(ChoosePathTest, LargeOnesAreCutIfTheyAreAloneAndCanBe) {
  for (std::int64_t side : {1024, 8192}) {
    EXPECT_EQ(Choose(Transpose(side, side), /*alone=*/true), Path::kBlocks);
    EXPECT_EQ(Choose(Transpose(side, side), /*alone=*/false), Path::kCopied);
    EXPECT_EQ(Choose(Transpose(side, side), /*alone=*/true, /*can_map=*/true, /*can_cut=*/false),
              Path::kCopied);
  }
}

TEST(ChoosePathTest, ProgramsAreCutFromTheLimitOn) {
  EXPECT_EQ(PlanMemory(Transpose(1024, 512)).TravellingBytes(), PathLimits().cut_bytes);
  EXPECT_EQ(Choose(Transpose(1024, 512), /*alone=*/true), Path::kBlocks);
  EXPECT_EQ(Choose(Transpose(1023, 512), /*alone=*/true), Path::kCopied);
}

TEST(ChoosePathTest, ScatteredAccessesStayOffTheBusSooner) {
  EXPECT_EQ(Choose(Transpose(1000, 3), /*alone=*/true), Path::kMapped);
  EXPECT_EQ(Choose(Transpose(20000, 3), /*alone=*/true), Path::kCopied);
  EXPECT_EQ(Choose(Transpose(20000, 8), /*alone=*/true), Path::kMapped);
  Program add =
      OneStep(ToMap({.op = PairOp::kAdd, .shape = {256, 256}, .x_strides = {256, 1}, .y_strides = {256, 1}}),
              256 * 256 * 8, 256 * 256 * 4);
  EXPECT_EQ(Choose(add, /*alone=*/true), Path::kMapped);
  std::get<MapProblem>(add.steps[0].problem).inputs[1].strides = {0, 1};
  EXPECT_EQ(Choose(add, /*alone=*/true), Path::kCopied) << "a broadcast operand is read many times";
}

// The server gives a scalar the row stride of its one row, which once was taken for that of the axis before
// the first.
TEST(ChoosePathTest, ProblemsOfScalarsHaveAPath) {
  for (const std::int64_t row_stride : {0, 1}) {
    for (const ReduceOp op : kAllReduceOps) {
      const Program program = OneStep(ReduceProblem{.op = op, .shape = {}, .row_stride = row_stride}, 4, 4);
      EXPECT_EQ(Choose(program, /*alone=*/true), Path::kMapped) << Name(op);
    }
    const Program program =
        OneStep(TransposeProblem{.shape = {}, .perm = {}, .row_stride = row_stride}, 4, 4);
    EXPECT_EQ(Choose(program, /*alone=*/true), Path::kMapped);
  }
  const Program map = OneStep(ToMap({.op = PairOp::kAdd, .shape = {}}), 4, 4);
  EXPECT_EQ(Choose(map, /*alone=*/true), Path::kMapped);
  const Program take = OneStep(TakeProblem{.shape = {}, .axis_size = 7, .axis_stride = 1}, 36, 4);
  EXPECT_EQ(Choose(take, /*alone=*/true), Path::kMapped);
}

// A client can change its shared memory while a kernel runs.
TEST(ChoosePathTest, NoKernelReadsTwiceWhereAClientCanWrite) {
  const Problem problems[] = {CompressProblem{.rows = 8, .width = 2},
                              SortProblem{.rows = 1, .count = 8, .taken = 8}};
  for (const Problem& problem : problems) {
    ASSERT_TRUE(ReadsTwice(OpOf(problem)));
    const Program program = OneStep(problem, 64, 64);
    for (const bool shared : {false, true}) {
      OwnMemory own;
      if (shared) own.shared = {0, 1};
      for (const bool alone : {false, true}) {
        const PathQuestion question{.alone = alone, .can_map = true, .can_cut = true};
        const Path path = ChoosePath(program, PlanMemory(program, own), question, {});
        EXPECT_NE(path, Path::kMapped) << Name(OpOf(problem));
        EXPECT_NE(path, Path::kBlocks) << Name(OpOf(problem));
      }
    }
  }
  for (const Op op : kAllOps) {
    EXPECT_EQ(ReadsTwice(op), op == Op::kCompress || op == Op::kSort) << "add the operation above, too";
  }
}

TEST(ChoosePathTest, ReductionsRunOnTheirSlotsToo) {
  const Program sum = OneStep(ReduceProblem{.shape = {350, 350}, .axes_mask = 2}, 490000, 1400);
  EXPECT_EQ(Choose(sum, /*alone=*/false), Path::kMapped);
  const Program large = OneStep(ReduceProblem{.shape = {5000, 5000}, .axes_mask = 2}, 100000000, 20000);
  EXPECT_EQ(Choose(large, /*alone=*/true, /*can_map=*/true, /*can_cut=*/false), Path::kCopied);
}

TEST(ChoosePathTest, ProductsChainsAndNamedVariantsAreCopied) {
  const Program gemm = OneStep(GemmProblem{.m = 8, .n = 8, .k = 8, .lda = 8, .ldb = 8, .ldc = 8}, 512, 256);
  EXPECT_EQ(Choose(gemm, /*alone=*/true, /*can_map=*/true, /*can_cut=*/false), Path::kCopied);
  Program named = Transpose(32, 32);
  named.steps[0].variant = "naive_read";
  EXPECT_EQ(Choose(named, /*alone=*/true), Path::kCopied);
  Program chain = Transpose(32, 32);
  chain.tensors.push_back(chain.tensors[1]);
  chain.steps.push_back(chain.steps[0]);
  chain.steps[1].inputs = {1};
  chain.steps[1].output = 2;
  chain.outputs = {2};
  EXPECT_EQ(Choose(chain, /*alone=*/true), Path::kCopied);
}

TEST(ChoosePathTest, SharedTensorsAreAsGoodAsSlots) {
  const auto choose = [](const Program& program, const OwnMemory& own, bool alone) {
    return ChoosePath(program, PlanMemory(program, own), {.alone = alone, .can_map = true, .can_cut = true},
                      {});
  };
  const OwnMemory both{.resident = {}, .shared = {0, 1}}, one{.resident = {}, .shared = {1}};
  for (const OwnMemory& own : {both, one}) {
    EXPECT_EQ(choose(Transpose(256, 256), own, false), Path::kMapped);
    EXPECT_EQ(choose(Transpose(512, 512), own, true), Path::kMapped);
    EXPECT_EQ(choose(Transpose(512, 512), own, false), Path::kCopied);
    EXPECT_EQ(choose(Transpose(4096, 4096), own, true), Path::kBlocks);
    EXPECT_EQ(choose(Transpose(4096, 4096), own, false), Path::kCopied);
  }
  // From the device into a region: it travels, but there is nothing to cut.
  const OwnMemory mixed{.resident = {0}, .shared = {1}};
  EXPECT_EQ(choose(Transpose(256, 256), mixed, true), Path::kMapped);
  EXPECT_EQ(choose(Transpose(4096, 4096), mixed, true), Path::kCopied);
}

TEST(ChoosePathTest, WhatDoesNotFitIntoALaneRunsInMemoryOfThePool) {
  const Program large = Transpose(8192, 8192);
  const auto choose = [&](const PathQuestion& question) {
    return ChoosePath(large, PlanMemory(large), question, {});
  };
  EXPECT_EQ(choose({.fits_lane = false}), Path::kCopied);
  EXPECT_EQ(choose({.alone = true, .fits_lane = false}), Path::kCopied);
  EXPECT_EQ(choose({.alone = true, .can_cut = true, .fits_lane = false}), Path::kBlocks);
  Program named = large;
  named.steps[0].variant = "naive_read";
  EXPECT_EQ(ChoosePath(named, PlanMemory(named), {.alone = true, .can_cut = true, .fits_lane = false}, {}),
            Path::kCopied);
  // Its intermediates may need more than its inputs and outputs say.
  const Program small = Transpose(32, 32);
  EXPECT_EQ(ChoosePath(small, PlanMemory(small), {.can_map = true, .fits_lane = false}, {}), Path::kCopied);
}

}  // namespace
}  // namespace warpline
