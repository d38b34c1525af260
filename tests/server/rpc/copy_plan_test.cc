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

TEST(CopyPlanTest, CopiesWhatIsThere) {
  const auto plan = CopyPlan(Counted(), std::vector<std::int64_t>{3, 0}, InlineLimit(1000));
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
  const auto plan = CopyPlan(counted, std::vector<std::int64_t>{1000, 0}, InlineLimit(1));
  ASSERT_THAT(plan, IsOk());
  EXPECT_EQ(plan->memory.tensors[2].area, Area::kResident);
  EXPECT_EQ(plan->memory.tensors[3].area, Area::kShared);
}

TEST(CopyPlanTest, RefusesWhatIsTooLargeWithTheSizeFound) {
  const auto plan = CopyPlan(Counted(), std::vector<std::int64_t>{31, 0}, InlineLimit(991));
  EXPECT_THAT(
      std::string(plan.status().message()),
      HasSubstr("program.outputs[0]: the result is f32 [31,8], and takes 992 bytes; the limit is 991"));
}

}  // namespace
}  // namespace warpline
