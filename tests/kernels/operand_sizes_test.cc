#include "kernels/operand_sizes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "kernels/problem_text.h"

namespace warpline {
namespace {

using testing::ElementsAre;

std::vector<std::int64_t> Counts(const char* text) {
  const Problem problem = *ParseProblem(text);
  std::vector<std::int64_t> counts;
  for (const OperandSize& input : InputSizes(problem)) counts.push_back(input.count);
  counts.push_back(OutputSize(problem).count);
  return counts;
}

TEST(OperandSizesTest, CountsTheElementsOfInputsAndResult) {
  EXPECT_THAT(Counts("transpose f32 2x3x4 2,1,0"), ElementsAre(24, 24));
  EXPECT_THAT(Counts("sum f32 2x3x4 0,2"), ElementsAre(24, 3));
  EXPECT_THAT(Counts("cast u8 2x3 >f32"), ElementsAre(6, 6));
  EXPECT_THAT(Counts("add f32 2x3 *0"), ElementsAre(6, 3, 6));
  EXPECT_THAT(Counts("gemm f32 2x3x4 c bias"), ElementsAre(8, 12, 6, 3, 6));
}

TEST(OperandSizesTest, RowsThatAreApartEndAtTheLastElement) {
  EXPECT_THAT(Counts("transpose f32 2x3 1,0 ld=5"), ElementsAre(8, 6));
  EXPECT_THAT(Counts("sum f32 2x2x3 1 ld=5"), ElementsAre(18, 6));
}

TEST(OperandSizesTest, ABroadcastOperandOfABatchIsThereOnce) {
  EXPECT_THAT(Counts("gemm f32 2x3x4 batch=5x6 a=6,1 b=0,1 c=0,0"), ElementsAre(240, 72, 180));
}

TEST(OperandSizesTest, ResultsHaveTheirOwnType) {
  EXPECT_EQ(OutputSize(*ParseProblem("argmax f32 2x3 1")).Bytes(), 16u);
  EXPECT_EQ(OutputSize(*ParseProblem("gemm i8 4x4x4")).Bytes(), 64u);
  EXPECT_EQ(OutputSize(*ParseProblem("gemm bf16 4x4x4 >f32")).Bytes(), 64u);
}

}  // namespace
}  // namespace warpline
