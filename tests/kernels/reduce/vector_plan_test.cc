#include "kernels/reduce/vector_plan.h"

#include <random>
#include <utility>

#include "gtest/gtest.h"
#include "tests/testing/shapes.h"

namespace warpline {
namespace {

constexpr int kMultiprocessors = 132;

ReduceProblem Problem(DType dtype, std::initializer_list<std::int64_t> dims, std::uint32_t axes_mask,
                      ReduceOp op = ReduceOp::kSum) {
  ReduceProblem problem;
  problem.op = op;
  problem.dtype = dtype;
  problem.shape = Shape(dims);
  problem.axes_mask = axes_mask;
  return problem;
}

constexpr DeviceTraits kAmpere = {.compute_capability = 80, .multiprocessors = kMultiprocessors};
constexpr DeviceTraits kHopper = {.compute_capability = 90, .multiprocessors = kMultiprocessors};

VectorPlan Plan(const ReduceProblem& problem, bool aligned_base = true,
                const DeviceTraits& traits = kAmpere) {
  return PlanVectors(problem, Canonicalize(problem), aligned_base, traits);
}

TEST(VectorPlanTest, ShapesGoToTheirKernels) {
  EXPECT_EQ(Plan(Problem(DType::kF32, {16384, 16384}, 2)).shape, ReduceShape::kRows);
  EXPECT_EQ(Plan(Problem(DType::kF32, {1000000, 10}, 2)).shape, ReduceShape::kPackedRows);
  EXPECT_EQ(Plan(Problem(DType::kF32, {16384, 16384}, 1)).shape, ReduceShape::kColumns);
  EXPECT_EQ(Plan(Problem(DType::kF32, {1000000, 3}, 1)).shape, ReduceShape::kFlatColumns);
  EXPECT_EQ(Plan(Problem(DType::kF32, {256, 512, 512}, 5)).shape, ReduceShape::kRows);
  EXPECT_EQ(Plan(Problem(DType::kF32, {100000, 12, 12}, 2)).shape, ReduceShape::kPackedColumns);
  EXPECT_EQ(Plan(Problem(DType::kF32, {100, 12, 12}, 2)).shape, ReduceShape::kColumns);
  // Padded rows do not follow each other.
  ReduceProblem padded = Problem(DType::kF32, {1000, 10}, 2);
  padded.row_stride = 12;
  EXPECT_EQ(Plan(padded).shape, ReduceShape::kRows);
  EXPECT_FALSE(Plan(Problem(DType::kF32, {16384, 16384}, 1), /*aligned_base=*/false).aligned);
}

TEST(VectorPlanTest, OddBlocksAreFlatWhereverTheyBegin) {
  const VectorPlan plan = Plan(Problem(DType::kF32, {100, 127, 129}, 2));
  EXPECT_EQ(plan.shape, ReduceShape::kFlatColumns);
  EXPECT_EQ(plan.lanes, 129);  // four rows of 129 elements are whole vectors
  EXPECT_EQ(plan.threads, 160);
  EXPECT_EQ(Plan(Problem(DType::kF32, {100, 127, 129}, 2), /*aligned_base=*/false).shape,
            ReduceShape::kFlatColumns);
  EXPECT_EQ(Plan(Problem(DType::kF32, {100, 128, 257}, 2)).shape, ReduceShape::kShiftedColumns);
}

TEST(VectorPlanTest, UnalignedRowsAreShifted) {
  const VectorPlan many = Plan(Problem(DType::kF32, {16384, 4097}, 1));
  EXPECT_EQ(many.shape, ReduceShape::kShiftedColumns);
  EXPECT_EQ(many.lanes, 32);
  EXPECT_EQ(many.results_per_cta, 125);
  const VectorPlan few = Plan(Problem(DType::kBF16, {2000, 17, 4001}, 2));
  EXPECT_EQ(few.shape, ReduceShape::kShiftedColumns);
  EXPECT_EQ(few.lanes, 64);
  EXPECT_EQ(few.results_per_cta, 253);
  EXPECT_EQ(Plan(Problem(DType::kF32, {16384, 4096}, 1)).shape, ReduceShape::kColumns);
  EXPECT_EQ(Plan(Problem(DType::kF32, {16384, 4097}, 1), /*aligned_base=*/false).shape,
            ReduceShape::kColumns);
  EXPECT_EQ(Plan(Problem(DType::kF32, {2000, 17, 2001}, 2)).shape, ReduceShape::kColumns);
}

TEST(VectorPlanTest, SinceHopperTheDeviceCopiesLongUnalignedRows) {
  const auto plan = [](const ReduceProblem& problem, bool aligned_base = true) {
    return Plan(problem, aligned_base, kHopper);
  };
  const VectorPlan few = plan(Problem(DType::kF32, {2000, 17, 2001}, 2));
  EXPECT_EQ(few.shape, ReduceShape::kBulkColumns);
  EXPECT_EQ(few.results_per_cta, 1001);
  EXPECT_EQ(few.tiles, 4000);
  EXPECT_EQ(few.threads, 32 * (8 + 1));
  EXPECT_EQ(few.pitch, 4016 + 16);  // rows are not aligned to 16 bytes
  EXPECT_EQ(few.rows_per_stage, 8);
  // Along several axes too.
  EXPECT_EQ(plan(Problem(DType::kBF16, {40, 100, 30, 1101}, 5)).shape, ReduceShape::kBulkColumns);
  EXPECT_EQ(plan(Problem(DType::kF64, {2000, 17, 2001}, 2, ReduceOp::kVar)).shape, ReduceShape::kBulkColumns);
  EXPECT_NE(plan(Problem(DType::kF64, {2000, 17, 2001}, 2)).shape, ReduceShape::kBulkColumns);
  EXPECT_NE(plan(Problem(DType::kF32, {16384, 4097}, 1)).shape, ReduceShape::kBulkColumns);  // three tiles
  EXPECT_EQ(plan(Problem(DType::kF32, {250, 300, 1029}, 2)).shape, ReduceShape::kBulkColumns);
  EXPECT_NE(plan(Problem(DType::kF32, {200, 300, 1029}, 2)).shape, ReduceShape::kBulkColumns);
  EXPECT_NE(plan(Problem(DType::kF32, {2000, 17, 2000}, 2)).shape, ReduceShape::kBulkColumns);
  EXPECT_NE(plan(Problem(DType::kF32, {20, 17, 2001}, 2)).shape, ReduceShape::kBulkColumns);
  EXPECT_NE(plan(Problem(DType::kF32, {2000, 170, 201}, 2)).shape, ReduceShape::kBulkColumns);
  EXPECT_NE(plan(Problem(DType::kF32, {2000, 17, 2001}, 2), /*aligned_base=*/false).shape,
            ReduceShape::kBulkColumns);
}

TEST(VectorPlanTest, WhatADeviceCopiesFitsItsStages) {
  for (const DType dtype : {DType::kU8, DType::kBF16, DType::kF32, DType::kF64}) {
    for (std::int64_t inner = 257; inner < 20000; inner += 2 + inner / 7 * 2) {
      const VectorPlan plan = Plan(Problem(dtype, {2, 10, (1 << 22) / inner, inner}, 0b0101, ReduceOp::kVar),
                                   /*aligned_base=*/true, kHopper);
      ASSERT_EQ(plan.shape, ReduceShape::kBulkColumns) << inner;
      EXPECT_GE(plan.rows_per_stage, 4) << inner;
      EXPECT_EQ(plan.rows_per_stage % 4, 0) << inner;
      EXPECT_LE(plan.rows_per_stage, kMaxBulkRows) << inner;
      EXPECT_LE(plan.rows_per_stage * plan.pitch, kBulkStageBytes) << inner;
      EXPECT_LE(plan.threads, kMaxBulkThreads) << inner;
      // Tiles cover a row, and none is empty.
      ASSERT_EQ(plan.tiles % 10, 0) << inner;
      EXPECT_GE(plan.tiles / 10 * plan.results_per_cta, inner);
      EXPECT_LT((plan.tiles / 10 - 1) * plan.results_per_cta, inner);
    }
  }
}

TEST(VectorPlanTest, BlocksForAllMultiprocessorsGoThroughSharedMemory) {
  const VectorPlan large = Plan(Problem(DType::kF32, {4000, 127, 129}, 2));
  EXPECT_EQ(large.shape, ReduceShape::kPackedColumns);
  EXPECT_EQ(large.results_per_cta, 129);
  EXPECT_EQ(large.lanes, 1);
  const VectorPlan small = Plan(Problem(DType::kF32, {300000, 64, 7}, 2));
  EXPECT_EQ(small.shape, ReduceShape::kPackedColumns);
  EXPECT_EQ(small.results_per_cta, 18 * 7);  // 32 KiB
  EXPECT_EQ(small.lanes, 2);
  EXPECT_NE(Plan(Problem(DType::kF32, {131, 127, 129}, 2)).shape, ReduceShape::kPackedColumns);
  EXPECT_NE(Plan(Problem(DType::kF32, {4000, 144, 129}, 2)).shape, ReduceShape::kPackedColumns);  // 73 KB
  EXPECT_NE(Plan(Problem(DType::kF32, {4000, 127, 129}, 2), /*aligned_base=*/false).shape,
            ReduceShape::kPackedColumns);
}

TEST(VectorPlanTest, RowsThatLeaveRoomAreTakenByMoreThreads) {
  const VectorPlan few = Plan(Problem(DType::kF32, {2048, 2048}, 2));
  EXPECT_EQ(few.lanes, 64);
  EXPECT_EQ(few.split, 1);
  EXPECT_EQ(Plan(Problem(DType::kF32, {8192, 2048}, 2)).lanes, 32);
  // Two loads each would be too few.
  EXPECT_EQ(Plan(Problem(DType::kF32, {600, 1024}, 2)).lanes, 64);
}

TEST(VectorPlanTest, FewResultsAreSharedByManyCtas) {
  EXPECT_GT(Plan(Problem(DType::kF32, {1 << 28}, 1)).split, kMultiprocessors);
  EXPECT_GT(Plan(Problem(DType::kF32, {20000000, 3}, 1)).split, kMultiprocessors);
  EXPECT_EQ(Plan(Problem(DType::kF32, {1 << 20, 64}, 2)).split, 1);
  EXPECT_EQ(Plan(Problem(DType::kF32, {4096}, 1)).split, 1);
  // There are as many CTAs as the device holds at the same time.
  const VectorPlan rows = Plan(Problem(DType::kF32, {200, 1 << 20}, 2));
  EXPECT_LE(rows.tiles * rows.split, 4 * kMultiprocessors);
  EXPECT_GE(rows.tiles * rows.split, 3 * kMultiprocessors);
  EXPECT_EQ(Plan(Problem(DType::kF32, {1 << 28}, 1, ReduceOp::kArgmax)).split, 3 * kMultiprocessors);
}

TEST(VectorPlanTest, CtasAreWholeWaves) {
  // Twelve parts of 64 KiB each would be a wave and a half.
  const VectorPlan images = Plan(Problem(DType::kU8, {64, 512, 512, 3}, 6, ReduceOp::kMean));
  EXPECT_EQ(images.tiles, 64);
  EXPECT_EQ(images.split, 8);
}

TEST(VectorPlanTest, TilesThatKeepAllMultiprocessorsBusyAreSharedIfTheyAreLarge) {
  EXPECT_EQ(Plan(Problem(DType::kF32, {256, 128, 128}, 2)).split, 1);
  EXPECT_GT(Plan(Problem(DType::kF32, {200, 1 << 20}, 2)).split, 1);
  EXPECT_GT(Plan(Problem(DType::kF64, {64, 256, 255}, 2)).split, 1);  // 64 tiles
}

TEST(VectorPlanTest, TilesAreWiderWhereLessThanAWaveIsBetterThanALittleMore) {
  // With 125 columns per tile, 540 tiles would be two per cent more than four CTAs on each of 132
  // multiprocessors.
  const VectorPlan shifted = Plan(Problem(DType::kF32, {60, 1200, 1029}, 2));
  EXPECT_EQ(shifted.lanes, 64);
  EXPECT_EQ(shifted.tiles, 300);
  EXPECT_EQ(shifted.split, 1);
  const VectorPlan rows =
      Plan(Problem(DType::kF32, {100, 200, 50, 64}, 0b1010));  // 625 CTAs of 32 lanes a row
  EXPECT_EQ(rows.lanes, 128);
  const VectorPlan columns = Plan(Problem(DType::kF32, {100, 600, 1100}, 2));  // 860 CTAs of 32 lanes
  EXPECT_EQ(columns.lanes, 64);
  // A plan that fills whole waves as it is stays so.
  EXPECT_EQ(Plan(Problem(DType::kF32, {129, 1000, 1000}, 2)).lanes, 32);
  EXPECT_EQ(Plan(Problem(DType::kF32, {20000, 4096}, 2)).lanes, 32);
}

TEST(VectorPlanTest, ColumnsOfFewRowsAreSharedByNoThreads) {
  EXPECT_EQ(Plan(Problem(DType::kF32, {2000, 30, 1000}, 2, ReduceOp::kArgmax)).lanes, kVectorThreads);
  EXPECT_EQ(Plan(Problem(DType::kF32, {2000, 30, 1000}, 2)).shape, ReduceShape::kFewRows);
  EXPECT_EQ(Plan(Problem(DType::kF32, {65, 1 << 22}, 1)).shape, ReduceShape::kColumns);
  // With too few columns for all threads they are.
  EXPECT_LT(Plan(Problem(DType::kF32, {4, 64, 512}, 2)).lanes, kVectorThreads);
  EXPECT_NE(Plan(Problem(DType::kF32, {2, 1 << 18}, 1)).shape, ReduceShape::kFewRows);
}

TEST(VectorPlanTest, NoThreadsAreLeftWithoutAResult) {
  EXPECT_EQ(Plan(Problem(DType::kF32, {400, 128}, 1)).lanes, 32);
  EXPECT_LE(Plan(Problem(DType::kF32, {100, 32}, 1)).lanes, 32);
  EXPECT_EQ(Plan(Problem(DType::kF32, {4096}, 1)).lanes, kVectorThreads);
  EXPECT_EQ(Plan(Problem(DType::kF32, {15000}, 1)).lanes, kVectorThreads);
  ReduceProblem padded = Problem(DType::kF32, {200, 400, 101}, 2);
  padded.row_stride = 103;
  EXPECT_EQ(Plan(padded).shape, ReduceShape::kShiftedColumns);
  EXPECT_EQ(Plan(padded).lanes, 32);
  // Whole loads of columns need an aligned input; flat ones do not.
  EXPECT_EQ(Plan(Problem(DType::kF32, {1 << 20, 128}, 1), /*aligned_base=*/false).shape,
            ReduceShape::kFlatColumns);
}

TEST(VectorPlanTest, ALaunchMoreMustBeWorthIt) {
  EXPECT_EQ(Plan(Problem(DType::kF32, {64, 256, 256}, 2)).split, 1);  // 128 tiles, four microseconds in all
  EXPECT_GT(Plan(Problem(DType::kF32, {1, 1 << 22}, 2)).split, 1);
}

TEST(VectorPlanTest, UnalignedRunsAreTakenByGroups) {
  const VectorPlan odd = Plan(Problem(DType::kF32, {143, 435, 353}, 0b101));
  EXPECT_EQ(odd.shape, ReduceShape::kRuns);
  EXPECT_EQ(odd.group, 8);  // 353 elements touch 89 vectors, or 90; a group takes 32 at once
  EXPECT_EQ(odd.pieces, 3);
  EXPECT_EQ(odd.steps, 143 * 3);
  EXPECT_EQ(odd.extent, 143 * 435 * 353);
  const VectorPlan small = Plan(Problem(DType::kU8, {10, 141472, 12, 9}, 0b1001));
  EXPECT_EQ(small.shape, ReduceShape::kRuns);
  EXPECT_EQ(small.group, 1);
  EXPECT_EQ(small.pieces, 1);
  const VectorPlan large = Plan(Problem(DType::kBF16, {8, 136, 81137}, 0b101));
  EXPECT_EQ(large.group, 32);
  EXPECT_GT(large.split, 1);  // 136 results
  EXPECT_EQ(Plan(Problem(DType::kF32, {143, 435, 352}, 0b101)).shape, ReduceShape::kRows);
  EXPECT_EQ(Plan(Problem(DType::kF32, {143, 435, 352}, 0b101), /*aligned_base=*/false).shape,
            ReduceShape::kRuns);
}

TEST(VectorPlanTest, RowsOfVarInF64AreTakenByWarps) {
  EXPECT_EQ(Plan(Problem(DType::kF64, {8192, 8192}, 2)).lanes, kVectorThreads);
  EXPECT_EQ(Plan(Problem(DType::kF64, {8192, 8192}, 2, ReduceOp::kVar)).lanes, 32);
  EXPECT_EQ(Plan(Problem(DType::kF32, {8192, 16384}, 2, ReduceOp::kVar)).lanes, kVectorThreads);
}

TEST(VectorPlanTest, KernelsAreOfNumbers) {
  EXPECT_EQ(NumberClassOf(DType::kF16), NumberClass::kF32);
  EXPECT_EQ(NumberClassOf(DType::kF64), NumberClass::kF64);
  EXPECT_EQ(NumberClassOf(DType::kI8), NumberClass::kI32);
  EXPECT_EQ(NumberClassOf(DType::kBool), NumberClass::kU32);
  EXPECT_EQ(NumberClassOf(DType::kI64), NumberClass::kI64);
  EXPECT_EQ(NumberClassOf(DType::kU64), NumberClass::kU64);
}

TEST(VectorPlanTest, NothingIsPlannedToo) {
  for (const Shape& shape : {Shape{0, 300}, Shape{300, 0}, Shape{0, 0}, Shape{4, 0, 300}, Shape{0, 4, 300},
                             Shape{1 << 26, 0, 301}}) {
    for (std::uint32_t mask = 1; mask < 1u << shape.rank; ++mask) {
      ReduceProblem problem = Problem(DType::kF32, {}, mask);
      problem.shape = shape;
      for (const std::int64_t stride : {std::int64_t{0}, shape[shape.rank - 1] + 3}) {
        problem.row_stride = stride;
        const VectorPlan plan = Plan(problem, /*aligned_base=*/true, kHopper);
        EXPECT_EQ(plan.split, 1) << ToString(shape) << " mask " << mask;
        EXPECT_NE(plan.shape, ReduceShape::kBulkColumns) << ToString(shape) << " mask " << mask;
      }
    }
  }
}

// Plans the problems that conformance runs on a GPU for that kernel.
TEST(VectorPlanTest, LongOddRowsAreCopiedByTheDevice) {
  int problems = 0, shared = 0;
  for (const ReduceOp op : kAllReduceOps) {
    for (const DType dtype : {DType::kU8, DType::kBF16, DType::kF32, DType::kF64}) {
      if (!testing::MeetsLongRows(op, dtype)) continue;
      for (const ReduceProblem& problem : testing::LongOddRows(op, dtype)) {
        ++problems;
        const VectorPlan plan = Plan(problem, /*aligned_base=*/true, kHopper);
        EXPECT_EQ(plan.shape, ReduceShape::kBulkColumns) << testing::Describe(problem);
        shared += plan.split > 1 ? 1 : 0;
      }
    }
  }
  EXPECT_GT(problems, 100);
  EXPECT_GT(shared, 15);
}

// Whatever the sizes: CTAs cover all results and all elements, and what a plan calls aligned is.
TEST(VectorPlanTest, PlansCoverEverything) {
  std::mt19937 random(1);
  const auto size = [&random](int most) {
    return std::uniform_int_distribution<std::int64_t>(1, most)(random);
  };
  constexpr DType kTypes[] = {DType::kU8, DType::kBF16, DType::kF32, DType::kF64};
  constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMax, ReduceOp::kVar,
                               ReduceOp::kLogSumExp};
  bool bulk = false;
  for (int i = 0; i < 20000; ++i) {
    const int most = i % 3 == 0 ? 40 : i % 3 == 1 ? 300 : 3000;
    ReduceProblem problem = Problem(kTypes[i % 4], {size(most), size(most), size(i % 3 == 1 ? 3000 : 40)},
                                    static_cast<std::uint32_t>(size(7)), kOps[i % 5]);
    const CanonicalReduce reduce = Canonicalize(problem);
    const auto bytes = static_cast<std::int64_t>(SizeOf(problem.dtype));
    const std::int64_t columns = ColumnsOf(NumberClassOf(problem.dtype));
    for (const auto& [aligned_base, traits] :
         {std::pair(false, kHopper), std::pair(true, kHopper), std::pair(true, kAmpere)}) {
      const VectorPlan plan = PlanVectors(problem, reduce, aligned_base, traits);
      SCOPED_TRACE(ToString(problem.shape) + " mask " + std::to_string(problem.axes_mask));
      ASSERT_GE(plan.results_per_cta, 1);
      ASSERT_GE(plan.tiles * plan.results_per_cta, reduce.results);
      if (plan.shape != ReduceShape::kShiftedColumns && plan.shape != ReduceShape::kBulkColumns) {
        ASSERT_LT((plan.tiles - 1) * plan.results_per_cta, reduce.results);
      }
      ASSERT_GE(plan.split, 1);
      ASSERT_EQ(plan.WorkspaceBytes(reduce.results) > 0, plan.split > 1);
      const std::int64_t row_bytes = reduce.reduced_count * bytes;
      switch (plan.shape) {
        case ReduceShape::kPackedRows:
          ASSERT_TRUE(plan.results_per_cta == 8 || plan.results_per_cta * row_bytes <= kPackedBytes);
          // A round of all threads, or several.
          ASSERT_EQ(plan.lanes * plan.results_per_cta % kVectorThreads, 0);
          ASSERT_LE(plan.SharedBytes(row_bytes), 48 << 10);
          // Wherever in 16 bytes the first row begins.
          ASSERT_GE(plan.SharedBytes(row_bytes), plan.results_per_cta * row_bytes + 15);
          ASSERT_EQ(plan.aligned, row_bytes % 16 == 0);
          ASSERT_EQ(plan.split, 1);
          break;
        case ReduceShape::kPackedColumns:
          ASSERT_EQ(plan.results_per_cta % plan.inner, 0);  // whole blocks
          ASSERT_LE(plan.SharedBytes(row_bytes), kPackedSharedBytes);
          ASSERT_GE(plan.SharedBytes(row_bytes), plan.results_per_cta * row_bytes + 15);
          ASSERT_TRUE(plan.lanes == 1 || plan.lanes * plan.results_per_cta <= kVectorThreads);
          ASSERT_LE(plan.lanes, reduce.reduced_count);
          ASSERT_EQ(plan.split, 1);
          break;
        case ReduceShape::kRows: {
          ASSERT_GE(plan.chunk * plan.split, plan.steps);
          ASSERT_EQ(kVectorThreads % plan.lanes, 0);
          const std::int64_t run = reduce.reduced.dims[reduce.reduced.rank - 1];
          ASSERT_TRUE(reduce.reduced.rank == 1 || plan.aligned);
          if (plan.aligned) {
            ASSERT_EQ(run * bytes % 16, 0);
          }
          ASSERT_EQ(plan.steps, row_bytes / 16);  // a row of one run may have a bit more
          break;
        }
        case ReduceShape::kRuns: {
          ASSERT_GE(plan.chunk * plan.split, plan.steps);
          ASSERT_EQ(kVectorThreads % plan.lanes, 0);
          ASSERT_EQ(plan.lanes % plan.group, 0);
          ASSERT_LE(plan.group, 32);
          const std::int64_t run = reduce.reduced.dims[reduce.reduced.rank - 1], elements = 16 / bytes;
          // Groups of threads have all vectors of a run, wherever in one it begins.
          ASSERT_GE(plan.pieces * plan.group * kRowLoads * elements, run + elements - 1);
          ASSERT_LT((plan.pieces - 1) * plan.group * kRowLoads * elements, run + elements - 1);
          ASSERT_EQ(plan.steps, reduce.reduced_count / run * plan.pieces);
          ASSERT_EQ(plan.extent, problem.shape.Count());
          break;
        }
        case ReduceShape::kFewRows:
          ASSERT_EQ(plan.results_per_cta * bytes, kVectorThreads * 16);
          ASSERT_EQ(plan.inner * bytes % 16, 0);
          ASSERT_EQ(plan.split, 1);
          break;
        case ReduceShape::kColumns:
          ASSERT_EQ(plan.steps, reduce.reduced_count);
          ASSERT_GE(plan.chunk * plan.split, plan.steps);
          ASSERT_EQ(plan.results_per_cta, plan.lanes * columns);
          if (plan.aligned) {
            ASSERT_EQ(plan.inner % columns, 0);
          }
          break;
        case ReduceShape::kShiftedColumns: {
          const std::int64_t tiles_of_row = plan.tiles / (reduce.results / plan.inner);
          ASSERT_GE(tiles_of_row * plan.results_per_cta, plan.inner);
          ASSERT_LT((tiles_of_row - 1) * plan.results_per_cta, plan.inner);
          ASSERT_EQ(plan.steps, reduce.reduced_count);
          ASSERT_GE(plan.chunk * plan.split, plan.steps);
          ASSERT_EQ(kVectorThreads / plan.lanes % columns, 0);
          ASSERT_GE(plan.lanes * columns, plan.results_per_cta + columns - 1);
          break;
        }
        case ReduceShape::kBulkColumns: {
          const std::int64_t tiles_of_row = plan.tiles / (reduce.results / plan.inner);
          ASSERT_GE(tiles_of_row * plan.results_per_cta, plan.inner);
          ASSERT_LT((tiles_of_row - 1) * plan.results_per_cta, plan.inner);
          ASSERT_GE(plan.chunk * plan.split, plan.steps);
          ASSERT_LT(plan.chunk * (plan.split - 1), plan.steps);
          // A warp copies; the others have all columns.
          ASSERT_GE((plan.threads - 32) * columns, plan.results_per_cta);
          ASSERT_GE(plan.pitch, plan.results_per_cta * bytes + 15);
          bulk = true;
          break;
        }
        case ReduceShape::kFlatColumns: {
          ASSERT_EQ(plan.lanes * columns % plan.inner, 0);
          ASSERT_LE(plan.lanes, plan.threads);
          ASSERT_LE(plan.threads, kVectorThreads);
          ASSERT_GE(plan.chunk * plan.split * plan.lanes * columns, reduce.reduced_count * plan.inner);
          break;
        }
      }
    }
  }
  EXPECT_TRUE(bulk);
}

}  // namespace
}  // namespace warpline
