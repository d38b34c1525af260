#include "kernels/problem_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace warpline {
namespace {

using testing::HasSubstr;

std::string Again(std::string_view text) {
  const auto problem = ParseProblem(text);
  return problem.ok() ? ProblemText(*problem) : std::string(problem.status().message());
}

TEST(ProblemTextTest, ALineThatIsAsShortAsItCanBeIsThatOfItsProblem) {
  for (const char* text : {"transpose f32 8192x4096 1,0",
                           "transpose u8 2x3x4 2,0,1 ld=7",
                           "sum f32 4096 all",
                           "sum bf16 2x3x4 0,2",
                           "sum i32 2x3 1 >f64",
                           "var f64 2x3 1 ddof=1 ld=5",
                           "argmax f32 2x3 0",
                           "gemm bf16 128x256x512",
                           "gemm tf32 128x256x512 tt",
                           "gemm bf16 2x3x4 nt x5 >f32 bias gelu",
                           "gemm f32 2x3x4 tn c relu lda=9 ldb=10 ldc=11",
                           "gemm i8 4x4x4 ldb=16",
                           "gemm f32 2x3x4 batch=5x6 a=6,1 b=0,1",
                           "gemm f32 2x3x4 c batch=5x6 a=6,1 b=0,1 c=0,0",
                           "cast u8 2x3 >f32",
                           "scale f32 2x3",
                           "add f32 2x3 y=0,1",
                           "add f64 2x3 x=1,2 y=6,2",
                           "map 2x3 f32 f32@0,1 = subtract(0,1)",
                           "map 64 u8 = cast:f32(0) constant:f32(0) multiply(1,2)",
                           "map 2x3 bool f32 f32@0,0 = where(0,1,2) isnan(3)"}) {
    EXPECT_EQ(Again(text), text);
  }
}

TEST(ProblemTextTest, WhatIsUsualNeedNotBeSaid) {
  EXPECT_EQ(Again("gemm bf16 128x256x512 nn lda=512 ldb=256 ldc=256"), "gemm bf16 128x256x512");
  EXPECT_EQ(Again("gemm bf16 2x3x4 bias x5 nt"), "gemm bf16 2x3x4 nt x5 bias");
  EXPECT_EQ(Again("sum f32 2x3 0,1"), "sum f32 2x3 all");
  EXPECT_EQ(Again("sum i32 2x3 1 >i64"), "sum i32 2x3 1");
  EXPECT_EQ(Again("add f32 2x3 *0"), "add f32 2x3 y=0,1");
}

TEST(ProblemTextTest, ReadsEveryField) {
  const auto problem = ParseProblem("gemm f16 2x3x4 tn x5 >f32 c bias relu lda=9 ldb=10 ldc=11");
  ASSERT_TRUE(problem.ok()) << problem.status();
  const auto& gemm = std::get<GemmProblem>(*problem);
  EXPECT_EQ(gemm.dtype, DType::kF16);
  EXPECT_EQ(gemm.OutDType(), DType::kF32);
  EXPECT_EQ(gemm.m, 2);
  EXPECT_EQ(gemm.n, 3);
  EXPECT_EQ(gemm.k, 4);
  EXPECT_TRUE(gemm.trans_a);
  EXPECT_FALSE(gemm.trans_b);
  EXPECT_TRUE(gemm.has_c);
  EXPECT_TRUE(gemm.has_bias);
  EXPECT_EQ(gemm.activation, Activation::kRelu);
  EXPECT_EQ(gemm.batch, GemmBatch::Dense(5));
  EXPECT_EQ(gemm.lda, 9);
  EXPECT_EQ(gemm.ldb, 10);
  EXPECT_EQ(gemm.ldc, 11);
}

TEST(ProblemTextTest, RefusesOtherLinesAndSaysWhatItExpected) {
  const struct {
    const char* text;
    const char* expected;
  } cases[] = {{"", "an operation"},
               {"sort f32 2x3", "a reduction as sum"},
               {"sum f8 2x3 all", "a type"},
               {"sum tf32 2x3 all", "a type"},
               {"sum f32", "sizes"},
               {"sum f32 2x-3 all", "a number from 1 to 9223372036854775807, not \"-3\""},
               {"sum f32 0x3 all", "a number from 1 to "},
               {"sum f32 1000000000x1000000000x1000000000 all", "smaller sizes"},
               {"sum f32 1x1x1x1x1x1x1x1x1 all", "at most 8 numbers, not the 9 of \"1x1x1x1x1x1x1x1x1\""},
               {"sum f32 2x3", "axes"},
               {"sum f32 2x3 2", "axes below 2"},
               {"transpose f32 2x3", "the order of the axes"},
               {"transpose f32 2x3 0,0", "each axis once"},
               {"transpose f32 2x3x4 1,0", "each axis once"},
               {"transpose f32 2x3 1,0 ld=2", "a number from 3 to 9223372036854775807, not \"2\""},
               {"transpose f32 2x3 1,0 2", "nothing of \"2\""},
               {"gemm f32 2x3", "m, n and k"},
               {"gemm f32 2x3x4 fast", "nothing of \"fast\""},
               {"gemm f32 2x3x4 lda=3", "a number from 4 to "},
               {"gemm f32 2x3x4 batch=5x6 a=1", "a number for each axis"},
               {"gemm f32 2x3x4 batch=1x1x1x1x1x1x1", "at most 6 numbers, not the 7 of \"1x1x1x1x1x1x1\""},
               {"gemm bool 2x3x4", "a type of products"},
               {"gemm f32 2x3x4 >u8", "a type that products have"},
               {"gemm f32 2x3x4 >bf16", "a type that products have"},
               {"argmax f32 2x3x4 0,2", "one axis or all"},
               {"cast f32 2 u8", ">TYPE"},
               {"scale f32 2x3 x=1", "a number for each axis"}};
  for (const auto& [text, expected] : cases) {
    const auto problem = ParseProblem(text);
    EXPECT_EQ(problem.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(problem.status().message()), HasSubstr(expected)) << text;
  }
}

// Reads problems as the server makes them from a request. Dense rows have their length as stride, and C has
// its steps even where there is no C.
TEST(ProblemTextTest, WhatMeansTheSameReadsTheSame) {
  auto sum = std::get<ReduceProblem>(*ParseProblem("sum f32 2x3 1"));
  sum.row_stride = 3;
  EXPECT_EQ(ProblemText(sum), "sum f32 2x3 1");
  EXPECT_EQ(Again("transpose f32 2x3 1,0 ld=3"), "transpose f32 2x3 1,0");
  auto batch = std::get<GemmProblem>(*ParseProblem("gemm f32 2x3x4 x5"));
  batch.batch.c[0] = 0;
  EXPECT_EQ(ProblemText(batch), "gemm f32 2x3x4 x5");
}

TEST(ProblemTextTest, FilesHaveALineAProblemAndComments) {
  const auto problems =
      ParseProblems("# of yesterday\n\n  sum f32 2x3 1  # often\ngemm f32 2x3x4", "mine.txt");
  ASSERT_TRUE(problems.ok()) << problems.status();
  ASSERT_EQ(problems->size(), 2u);
  EXPECT_EQ(ProblemText((*problems)[1]), "gemm f32 2x3x4");
  EXPECT_TRUE(ParseProblems("", "none.txt")->empty());
  const auto wrong = ParseProblems("sum f32 2x3 1\nsum f33 2x3 1\n", "mine.txt");
  EXPECT_EQ(wrong.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(wrong.status().message()), testing::StartsWith("mine.txt:2: "));
}

TEST(ProblemTextTest, ScalarsAndWhatHasNoElementsOrSeveralResultsHaveNone) {
  EXPECT_EQ(ProblemText(TransposeProblem{}), "");
  auto product = std::get<GemmProblem>(*ParseProblem("gemm f32 2x3x4"));
  product.k = 0;
  EXPECT_EQ(ProblemText(product), "");
  auto sum = std::get<ReduceProblem>(*ParseProblem("sum f32 2x3 0"));
  sum.shape[0] = 0;
  EXPECT_EQ(ProblemText(sum), "");
  auto map = std::get<MapProblem>(*ParseProblem("map 2x3 f32 = exp(0) add(0,1)"));
  map.further = {0};
  EXPECT_EQ(ProblemText(map), "");
}

}  // namespace
}  // namespace warpline
