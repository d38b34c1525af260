#include "kernels/reduce/canonical.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/reduce/rung_plan.h"

namespace warpline {
namespace {

using DimList = std::vector<std::int64_t>;

ReduceProblem Problem(const DimList& dims, std::uint32_t axes_mask) {
  ReduceProblem problem;
  for (std::int64_t dim : dims) problem.shape.Append(dim);
  problem.axes_mask = axes_mask;
  return problem;
}

DimList Dims(const AxisList& axes) { return {axes.dims, axes.dims + axes.rank}; }
DimList Strides(const AxisList& axes) { return {axes.strides, axes.strides + axes.rank}; }

// The offsets of a row-major walk over the axes whose bit is set in `mask`.
DimList Walk(const DimList& dims, std::uint32_t mask) {
  DimList offsets = {0};
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    if (!(mask >> axis & 1)) continue;
    std::int64_t stride = 1;
    for (std::size_t inner = axis + 1; inner < dims.size(); ++inner) stride *= dims[inner];
    DimList next;
    for (std::int64_t offset : offsets) {
      for (std::int64_t i = 0; i < dims[axis]; ++i) next.push_back(offset + i * stride);
    }
    offsets = next;
  }
  return offsets;
}

DimList Walk(const AxisList& axes) {
  DimList offsets;
  for (std::int64_t i = 0; i < axes.Count(); ++i) offsets.push_back(axes.Offset(i));
  return offsets;
}

TEST(CanonicalReduceTest, FullReductionIsOneRun) {
  const CanonicalReduce r = Canonicalize(Problem({2, 3, 4}, 0b111));
  EXPECT_EQ(Dims(r.reduced), DimList({24}));
  EXPECT_EQ(r.kept.rank, 0);
  EXPECT_EQ(r.results, 1);
  EXPECT_TRUE(r.InnermostReduced());
}

TEST(CanonicalReduceTest, UnitAxesCountForNothing) {
  const CanonicalReduce r = Canonicalize(Problem({2, 1, 4}, 0b101));
  EXPECT_EQ(Dims(r.reduced), DimList({8}));
  EXPECT_EQ(r.kept.rank, 0);
}

TEST(CanonicalReduceTest, KindsAlternate) {
  const CanonicalReduce r = Canonicalize(Problem({2, 3, 4, 5, 6}, 0b00110));
  EXPECT_EQ(Dims(r.kept), DimList({2, 30}));
  EXPECT_EQ(Strides(r.kept), DimList({360, 1}));
  EXPECT_EQ(Dims(r.reduced), DimList({12}));
  EXPECT_EQ(Strides(r.reduced), DimList({30}));
  EXPECT_FALSE(r.InnermostReduced());
}

TEST(CanonicalReduceTest, EmptyReducedAxisHasNoElements) {
  const CanonicalReduce r = Canonicalize(Problem({3, 0}, 0b10));
  EXPECT_EQ(r.results, 3);
  EXPECT_EQ(r.reduced_count, 0);
}

TEST(CanonicalReduceTest, NoAxisKeepsEveryElement) {
  const CanonicalReduce r = Canonicalize(Problem({3, 4}, 0));
  EXPECT_EQ(r.results, 12);
  EXPECT_EQ(r.reduced_count, 1);
}

TEST(CanonicalReduceTest, BothIndicesKeepTheOrderOfTheProblem) {
  const DimList shapes[] = {{2, 3, 4, 5}, {1, 3, 1, 5}, {2, 1, 1, 5}, {2, 3, 4, 1}, {2, 2, 2, 2, 2, 2, 2, 2}};
  for (const DimList& dims : shapes) {
    const std::uint32_t all = (1u << dims.size()) - 1;
    for (std::uint32_t mask = 0; mask <= all; ++mask) {
      ReduceProblem problem = Problem(dims, mask);
      problem.op = ReduceOp::kArgmax;  // whose result is an index
      const CanonicalReduce r = Canonicalize(problem);
      EXPECT_EQ(Walk(r.kept), Walk(dims, all & ~mask)) << ToString(problem.shape) << " mask " << mask;
      EXPECT_EQ(Walk(r.reduced), Walk(dims, mask)) << ToString(problem.shape) << " mask " << mask;
    }
  }
}

TEST(CanonicalReduceTest, WhereNoIndexIsAskedForTheLongestReducedAxisOfColumnsIsTheLast) {
  const DimList dims = {7, 4, 2, 3, 5, 6};
  const CanonicalReduce r = Canonicalize(Problem(dims, 0b010101));
  EXPECT_EQ(Dims(r.reduced), DimList({2, 5, 7}));
  DimList walk = Walk(r.reduced), expected = Walk(dims, 0b010101);
  std::sort(walk.begin(), walk.end());
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(walk, expected);
  EXPECT_EQ(Walk(r.kept), Walk(dims, 0b101010));
  // Neighbours in memory stay neighbours.
  EXPECT_EQ(Dims(Canonicalize(Problem(dims, 0b101010)).reduced), DimList({4, 3, 6}));
}

TEST(CanonicalReduceTest, PaddedRowsStayApart) {
  ReduceProblem problem = Problem({2, 3, 4}, 0b111);
  problem.row_stride = 5;
  const CanonicalReduce r = Canonicalize(problem);
  EXPECT_EQ(Dims(r.reduced), DimList({6, 4}));
  EXPECT_EQ(Strides(r.reduced), DimList({5, 1}));
}

TEST(CanonicalReduceTest, HasRoomForEveryPatternOfAxes) {
  for (std::uint32_t mask = 0; mask < 256; ++mask) {
    ReduceProblem problem = Problem({2, 2, 2, 2, 2, 2, 2, 2}, mask);
    problem.row_stride = 3;
    const CanonicalReduce r = Canonicalize(problem);
    EXPECT_LE(r.kept.rank, AxisList::kMaxAxes);
    EXPECT_LE(r.reduced.rank, AxisList::kMaxAxes);
    EXPECT_EQ(r.kept.Count() * r.reduced.Count(), 256);
  }
}

TEST(RungPlanTest, TakesVectorsOnlyWhereEveryLoadIsAligned) {
  const DeviceTraits h200 = {.compute_capability = 90, .multiprocessors = 132};
  ReduceProblem problem = Problem({100, 64}, 0b01);
  EXPECT_EQ(PlanRung(Canonicalize(problem), 4, h200).columns, 4);
  problem.row_stride = 66;
  EXPECT_EQ(PlanRung(Canonicalize(problem), 4, h200).columns, 1);
  problem.row_stride = 68;
  EXPECT_EQ(PlanRung(Canonicalize(problem), 4, h200).columns, 4);
  problem = Problem({4, 100, 1}, 0b010);  // kept results lie 100 * 3 apart
  problem.row_stride = 3;
  EXPECT_EQ(PlanRung(Canonicalize(problem), 4, h200).columns, 1);
}

TEST(RungPlanTest, TilesAndChunksCoverEverything) {
  const DimList sizes = {0, 1, 2, 3, 7, 8, 31, 33, 255, 257, 4095, 4097, 70001, 5000000};
  for (int vector : {8, 4, 2, 1}) {
    for (int multiprocessors : {0, 1, 132}) {
      for (std::int64_t m : sizes) {
        for (std::int64_t n : sizes) {
          for (std::uint32_t mask = 0; mask < 4; ++mask) {
            const CanonicalReduce reduce = Canonicalize(Problem({m, n}, mask));
            if (reduce.results == 0) continue;
            const RungPlan plan = PlanRung(reduce, vector, {.multiprocessors = multiprocessors});
            EXPECT_GE(plan.tiles * plan.results_per_cta, reduce.results);
            EXPECT_LT((plan.tiles - 1) * plan.results_per_cta, reduce.results);
            EXPECT_GE(plan.split * plan.chunk, reduce.reduced_count);
            EXPECT_TRUE(plan.split == 1 || (plan.split - 1) * plan.chunk < reduce.reduced_count);
            EXPECT_EQ(plan.lanes & (plan.lanes - 1), 0);
            EXPECT_TRUE(plan.lanes >= 1 && plan.lanes <= kReduceThreads);
            EXPECT_TRUE(!plan.rows || plan.lanes <= 32 || plan.lanes == kReduceThreads);
          }
        }
      }
    }
  }
}

TEST(RungPlanTest, SplitsOnlyWhatWouldLeaveTheDeviceIdle) {
  const DeviceTraits h200 = {.compute_capability = 90, .multiprocessors = 132};
  EXPECT_GT(PlanRung(Canonicalize(Problem({1 << 28}, 1)), 4, h200).split, 132);
  EXPECT_GT(PlanRung(Canonicalize(Problem({1 << 20, 32}, 1)), 4, h200).split, 132);
  EXPECT_EQ(PlanRung(Canonicalize(Problem({4096}, 1)), 4, h200).split, 1);
  EXPECT_EQ(PlanRung(Canonicalize(Problem({1 << 14, 1 << 14}, 2)), 4, h200).split, 1);
}

TEST(RungPlanTest, AsksForAWorkspaceOnlyIfItSplits) {
  RungPlan plan;
  EXPECT_EQ(plan.WorkspaceBytes(100), 0u);
  EXPECT_EQ(plan.TicketBytes(), 0u);
  plan.split = 3;
  plan.tiles = 7;
  EXPECT_EQ(plan.WorkspaceBytes(100), 9600u);
  EXPECT_EQ(plan.TicketBytes(), 28u);
}

TEST(RungPlanTest, TicketsAreNoBurdenOnLargeProblems) {
  const DeviceTraits h200 = {.compute_capability = 90, .multiprocessors = 132};
  for (const DimList& dims : {DimList{1 << 28, 2}, DimList{1 << 14, 1 << 14}, DimList{1 << 20, 300}}) {
    for (std::uint32_t mask : {1u, 2u, 3u}) {
      EXPECT_LE(PlanRung(Canonicalize(Problem(dims, mask)), 4, h200).TicketBytes(), 2 * 132 * 4u);
    }
  }
}

TEST(RungPlanTest, CubAsksForPartialResultsOfOneResultOnly) {
  const DeviceTraits h200 = {.compute_capability = 90, .multiprocessors = 132};
  const std::size_t several = CubWorkspaceBytes(Canonicalize(Problem({1 << 28, 2}, 2)), h200);
  EXPECT_GT(several, 0u);  // no address means a question to CUB
  EXPECT_LE(several, 4096u);
  // 8 CTAs of 256 threads a multiprocessor, in 5 waves, an f32 each: what CUB asks for on this device.
  const std::size_t one = CubWorkspaceBytes(Canonicalize(Problem({1 << 28}, 1)), h200);
  EXPECT_GE(one, 132u * 8 * 5 * 4);
  EXPECT_LE(one, 1u << 20);
  EXPECT_GT(CubWorkspaceBytes(Canonicalize(Problem({5}, 1)), {}), 0u);
}

TEST(RungPlanTest, RungsRunWhatTypedKernelsRun) {
  ReduceProblem problem = Problem({5}, 1);
  for (DType dtype : kAllDTypes) {
    problem.dtype = dtype;
    EXPECT_TRUE(!HasRungs(dtype) || HasTypedKernel(problem)) << Name(dtype);
  }
  EXPECT_TRUE(HasRungs(DType::kF32) && HasRungs(DType::kF64) && HasRungs(DType::kI32));
  EXPECT_FALSE(HasRungs(DType::kBF16));
  problem.dtype = DType::kF32;
  problem.out_dtype = DType::kF64;  // f32 accumulators would be too coarse
  EXPECT_FALSE(HasTypedKernel(problem));
}

TEST(RungPlanTest, SumsAreWhatAtomicAdditionsCompute) {
  for (ReduceOp op :
       {ReduceOp::kSum, ReduceOp::kMean, ReduceOp::kNorm1, ReduceOp::kNorm2, ReduceOp::kSumSq}) {
    EXPECT_TRUE(IsSumLike(op)) << Name(op);
  }
  for (ReduceOp op : {ReduceOp::kMax, ReduceOp::kArgmin, ReduceOp::kNormInf, ReduceOp::kVar,
                      ReduceOp::kLogSumExp, ReduceOp::kProd}) {
    EXPECT_FALSE(IsSumLike(op)) << Name(op);
  }
}

}  // namespace
}  // namespace warpline
