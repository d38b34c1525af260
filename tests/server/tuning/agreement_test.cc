#include "server/tuning/agreement.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/problem_text.h"

namespace warpline {
namespace {

Agreement Of(const char* text) { return AgreementOf(*ParseProblem(text)); }

TEST(AgreementTest, WhatMovesOrComparesAgreesBitForBit) {
  for (const char* text : {"transpose f32 64x64 1,0", "max f32 4096 all", "argmin bf16 4096 all",
                           "gemm i8 64x64x64", "sum i32 4096 all", "cast f32 64 >i32"}) {
    EXPECT_EQ(Of(text).absolute, 0) << text;
    EXPECT_EQ(Of(text).relative, 0) << text;
  }
}

TEST(AgreementTest, SumsMayDifferByTheirRoundings) {
  EXPECT_DOUBLE_EQ(Of("gemm f32 64x64x1008").absolute, 16 * 1024 * 0x1p-24);
  EXPECT_DOUBLE_EQ(Of("gemm f64 64x64x1008").absolute, 16 * 1024 * 0x1p-53);
  EXPECT_DOUBLE_EQ(Of("sum f32 64x1023 1").absolute, 16 * 1024 * 0x1p-24);
  EXPECT_GT(Of("gemm tf32 64x64x1008").absolute, Of("gemm f32 64x64x1008").absolute);
}

TEST(AgreementTest, SumsOfIntegersMayDifferByTheirRoundingsOnlyWhereTheyBecomeFloats) {
  EXPECT_EQ(Of("sum i32 64x1023 1").relative, 0);
  EXPECT_GE(Of("var i32 64x1023 1").relative, 16 * 1024 * 0x1p-53);
  EXPECT_GE(Of("mean u8 64x1023 1").relative, 0x1p-52);
}

TEST(AgreementTest, ResultsOf16BitsMayDifferByTheRoundingOfTheResult) {
  EXPECT_DOUBLE_EQ(Of("gemm bf16 64x64x1008").relative, 0x1p-7);
  EXPECT_DOUBLE_EQ(Of("gemm bf16 64x64x1008 >f32").relative, 0x1p-23);
}

// Half of a result that is not there is 0 where numbers of about sqrt(k) must be.
TEST(AgreementTest, IsNarrowEnoughToFindAResultThatIsNotThere) {
  for (const char* text : {"gemm bf16 64x64x64", "gemm bf16 64x64x8192", "gemm f32 64x64x65536"}) {
    const double k = static_cast<double>(std::get<GemmProblem>(*ParseProblem(text)).k);
    EXPECT_LT(Of(text).absolute, 0.5 * std::sqrt(k)) << text;
  }
}

}  // namespace
}  // namespace warpline
