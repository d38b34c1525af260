// Reports of indices that are out of range: each program hears of its own, and of no others.
#include <gmock/gmock.h>

#include <limits>
#include <string>

#include "tests/gpu/gpu_test.h"
#include "tests/gpu/lane_runs.h"

namespace warpline {
namespace {

using testing::HasSubstr;

using BadIndexTest = GpuTest;

CudaBackendOptions OnSlots() {
  return {.lane_bytes = std::size_t{1} << 20,
          .graph_cache_entries = 32,
          .paths = {.mapped_bytes = std::size_t{128} << 10,
                    .mapped_bytes_alone = std::size_t{128} << 10,
                    .mapped_scattered_bytes = std::size_t{128} << 10},
          .timing_period = absl::InfiniteDuration()};
}

// 4 x 4 elements of a vector. The indices are what LaneRuns writes, numbers near 2^61.
Program Take(std::int64_t axis_size) {
  TakeProblem take{.dtype = DType::kF32,
                   .index_dtype = DType::kI64,
                   .shape = {4, 4},
                   .index_strides = {4, 1},
                   .axis_size = axis_size};
  return OneStepProgram(take, {{DType::kF32, {8}, 32}, {DType::kI64, {4, 4}, 128}},
                        {DType::kF32, {4, 4}, 64});
}
// Every index is in range, and names the first element.
Program TakeOfTheFirst() { return Take(std::numeric_limits<std::int64_t>::max()); }

// A take, and a product that refuses operands which are not aligned as it needs them.
Program TakeAndFail() {
  Program program = Take(8);
  program.tensors.push_back({DType::kF32, {4, 4}, 64});
  Step product{.problem = GemmProblem{.m = 4, .n = 4, .k = 2, .lda = 4, .ldb = 4, .ldc = 4},
               .variant = "wide_loads",
               .inputs = {2, 2},
               .output = 3,
               .scalars = {}};
  product.input_offsets = {4, 0};
  program.steps.push_back(product);
  program.outputs = {3};
  return program;
}

absl::Status StatusOf(LaneRuns& runs, Program program) {
  return runs.Launch(std::move(program))->report.get_future().get().status;
}

TEST_F(BadIndexTest, ABadIndexIsTheErrorOfItsProgramAlone) {
  LaneRuns runs(OnSlots());
  for (int round = 0; round < 3; ++round) {
    EXPECT_THAT(std::string(StatusOf(runs, Take(8)).message()), HasSubstr("which is outside of [-8, 8)"));
    EXPECT_TRUE(StatusOf(runs, TakeOfTheFirst()).ok());
  }
}

TEST_F(BadIndexTest, ABadIndexOfAProgramThatFailsOtherwiseIsForgotten) {
  LaneRuns runs(OnSlots());
  for (int round = 0; round < 3; ++round) {
    EXPECT_FALSE(StatusOf(runs, TakeAndFail()).ok());
    const absl::Status next = StatusOf(runs, TakeOfTheFirst());
    EXPECT_TRUE(next.ok()) << next;
  }
}

}  // namespace
}  // namespace warpline
