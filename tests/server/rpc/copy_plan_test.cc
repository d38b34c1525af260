// The plan that brings results to the client whose sizes depend on their elements.
#include "server/rpc/copy_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/testing/status_matchers.h"

namespace warpline {
namespace {

using testing::HasSubstr;
using testing::IsOk;

// A program with two outputs, of which the first may have up to 1000 rows of 8 f32.
Plan Counted() {
  Plan plan;
  plan.outputs = {{.name = "rows", .spec = {DType::kF32, {1000, 8}, 32'000}},
                  {.name = "sum", .spec = {DType::kF64, {}, 8}}};
  plan.counts = {256, Plan::kNoCount};
  return plan;
}

Limits InlineLimit(std::int64_t bytes) {
  Limits limits;
  limits.max_inline_bytes = bytes;
  return limits;
}

// The plan for so many rows, none of whose outputs is kept.
absl::StatusOr<Plan> PlanFor(const Plan& counted, std::int64_t rows, const Limits& limits) {
  const std::vector<TensorSpec> found = FoundSpecs(counted, std::vector<std::int64_t>{rows, 0});
  return CopyPlan(counted, found, {false, false}, limits);
}

TEST(CopyPlanTest, CopiesWhatIsThere) {
  const auto plan = PlanFor(Counted(), 3, InlineLimit(1000));
  ASSERT_THAT(plan, IsOk());
  ASSERT_EQ(plan->outputs.size(), 2u);
  EXPECT_EQ(plan->outputs[0].spec.shape, (Shape{3, 8}));
  EXPECT_EQ(plan->outputs[0].spec.bytes, 96u);
  EXPECT_EQ(plan->outputs[0].name, "rows");
  EXPECT_EQ(plan->outputs[1].spec.shape, Shape{});
  EXPECT_EQ(plan->memory.tensors[0].area, Area::kResident);
  EXPECT_EQ(plan->memory.tensors[2].area, Area::kOutput);
  EXPECT_FALSE(plan->IsCounted());
}

TEST(CopyPlanTest, LeavesResultsWhereTheirSinksSay) {
  Plan counted = Counted();
  counted.outputs[0].sink = 0;
  counted.outputs[1].sink = 1;
  counted.outputs[1].slice.emplace();
  const auto plan = PlanFor(counted, 1000, InlineLimit(1));
  ASSERT_THAT(plan, IsOk());
  EXPECT_EQ(plan->memory.tensors[2].area, Area::kResident);
  EXPECT_EQ(plan->memory.tensors[3].area, Area::kShared);
}

TEST(CopyPlanTest, WhatIsKeptIsNotCopied) {
  Plan counted = Counted();
  counted.outputs[0].sink = 0;
  counted.outputs[1].sink = 1;
  const std::vector<TensorSpec> found = FoundSpecs(counted, std::vector<std::int64_t>{999, 0});
  const auto one = CopyPlan(counted, found, {true, false}, InlineLimit(1));
  ASSERT_THAT(one, IsOk());
  EXPECT_EQ(one->program.steps.size(), 1u);
  EXPECT_EQ(one->program.outputs, (std::vector<int>{0, 2}));
  EXPECT_EQ(one->outputs[0].spec.shape, (Shape{999, 8}));
  const auto all = CopyPlan(counted, found, {true, true}, InlineLimit(1));
  ASSERT_THAT(all, IsOk());
  EXPECT_TRUE(all->program.steps.empty());
  EXPECT_EQ(all->program.outputs, (std::vector<int>{0, 1}));
}

TEST(CopyPlanTest, RefusesWhatIsTooLargeWithTheSizeFound) {
  const auto plan = PlanFor(Counted(), 31, InlineLimit(991));
  EXPECT_THAT(
      std::string(plan.status().message()),
      HasSubstr("program.outputs[0]: the result is f32 [31,8], and takes 992 bytes; the limit is 991"));
}

}  // namespace
}  // namespace warpline
