// Tests what runs without tuning on an H200, and what tuning tries. Both are rules, which need no GPU.
#include "server/tuning/candidates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "kernels/problem_text.h"
#include "server/device/cuda_rates.h"

namespace warpline {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

const DeviceTraits kH200 = {.compute_capability = 90, .multiprocessors = 132, .has_cublaslt = true};

std::string_view Untuned(const char* text) { return UntunedVariant(*ParseProblem(text), kH200); }

std::vector<std::string_view> Candidates(const char* text) {
  return TuningCandidates(*ParseProblem(text), kH200, CudaRates({}, kH200), 1);
}

TEST(CandidatesTest, WhatRunsWithoutTuningIsTheFirst) {
  for (const char* text : {"gemm bf16 128x4096x4096 nt", "gemm f32 1x8192x8192", "sum f32 4096x4096 0",
                           "transpose f32 8192x8192 1,0", "add f32 4096"}) {
    EXPECT_EQ(Candidates(text).front(), Untuned(text)) << text;
  }
}

TEST(CandidatesTest, ConfigurationsFollowTheirRow) {
  const auto candidates = Candidates("gemm bf16 4096x4096x4096");
  ASSERT_GT(candidates.size(), 16u);
  EXPECT_EQ(candidates[0], "cublas");
  EXPECT_EQ(candidates[1], "cublas:2");
  EXPECT_EQ(candidates[15], "cublas:16");
  EXPECT_THAT(candidates, Contains("wgmma"));
}

TEST(CandidatesTest, WhatIsManyTimesSlowerOrNotReproducibleIsNotTried) {
  EXPECT_THAT(Candidates("gemm bf16 4096x4096x4096"), Not(Contains("naive")));
  EXPECT_THAT(Candidates("sum f32 4096x4096 1"), Not(Contains("atomic")));
}

TEST(CandidatesTest, WhatTakesTooLongIsNotTriedAtAll) {
  const Problem problem = *ParseProblem("gemm f32 8192x8192x8192");
  EXPECT_THAT(TuningCandidates(problem, kH200, CudaRates({}, kH200), 1e-3), IsEmpty());
}

TEST(CandidatesTest, AFileMayNameWhatSuitsAndNothingElse) {
  const auto chosen = [](const char* text, const char* variant) {
    return ChosenVariant(*ParseProblem(text), variant, kH200);
  };
  EXPECT_EQ(chosen("gemm bf16 128x128x128", "cublas:5"), "cublas:5");
  EXPECT_EQ(chosen("gemm bf16 128x128x128", "mma"), "mma");
  EXPECT_THAT(chosen("gemm bf16 128x128x128", "cublas:17"), IsEmpty());
  EXPECT_THAT(chosen("gemm bf16 128x128x128", "vectorized"), IsEmpty());  // does not take bf16
  EXPECT_THAT(chosen("sum f32 4096 all", "atomic"), IsEmpty());           // gives other bits from run to run
  EXPECT_THAT(chosen("sum f32 4096 all", "cublas"), IsEmpty());
  // Names of files that were written when several kernels had one.
  EXPECT_EQ(chosen("sum f32 4096x4096 1", "vectorized"), "vectorized");
  EXPECT_EQ(chosen("transpose f32 33x31 1,0", "swizzled_packed"), "swizzled_packed");
}

TEST(CandidatesTest, OtherKernelsOfAGroupAreTriedToo) {
  EXPECT_THAT(Candidates("transpose f32 33x31 1,0"), testing::IsSupersetOf({"box", "odd_tiles"}));
  EXPECT_THAT(Candidates("sum f32 4096x100 1"), testing::IsSupersetOf({"packed_rows", "rows"}));
}

TEST(CandidatesTest, OnlyStepsThatLeaveTheVariantOpenAreTuned) {
  TunedChoices choices;
  choices.Set("gemm f32 64x64x64", "cublas:2");
  Program program;
  for (const char* variant : {"", "naive", ""}) {
    Step& step = program.steps.emplace_back();
    step.problem = *ParseProblem("gemm f32 64x64x64");
    step.variant = variant;
  }
  program.steps[2].problem = *ParseProblem("gemm f32 64x64x65");
  EXPECT_THAT(TunedVariants(program, kH200, choices), ElementsAre("cublas:2", "", ""));
}

TEST(CandidatesTest, ReductionsOfOneElementEachAreCopies) {
  for (const char* text : {"mean f32 51x38x20119x1 3", "sum f32 1000x1 1", "max u8 100x1x100 1",
                           "prod i64 7x1 1", "logsumexp bf16 1x9 0", "min f64 1 all"}) {
    EXPECT_EQ(Untuned(text), "copy") << text;
  }
  for (const char* text : {"sum f32 1000x1 1 ld=8", "norm1 f32 1000x1 1", "sum i32 1000x1 1 >i64",
                           "max bool 1000x1 1", "var f32 1000x1 1", "sum f32 1000x2 1"}) {
    EXPECT_NE(Untuned(text), "copy") << text;
  }
}

// Rules that tuning has found (docs/benchmarks/2026-11-23-h200-tuning.md).
TEST(CandidatesTest, SumsOfEverythingAreCubs) {
  for (const char* text : {"sum f32 1048576 all", "mean f64 100x100 all", "max f32 3x4x5 0,1,2"}) {
    EXPECT_EQ(Untuned(text), "cub") << text;
  }
  for (const char* text :
       {"sum f32 1000x1000 1", "sum f32 1000x1000 0", "sum f32 100x100 all ld=101", "sum f32 1000x1 all ld=8",
        "sum bf16 4096 all", "sum i32 4096 all", "var f32 4096 all", "argmax f32 4096 all"}) {
    EXPECT_TRUE(IsUntuned(*ParseProblem(text), "vectorized", kH200)) << text;
  }
}

TEST(CandidatesTest, SumsInF64OfNarrowerElementsHaveNoKernelOfTheirOwn) {
  for (const char* text : {"var i32 20x62784x33 2", "var u8 128x100x64x165 1", "prod i32 160x236976 0",
                           "mean i64 87500x200 1", "norm2 i64 48320x512 1"}) {
    EXPECT_TRUE(IsUntuned(*ParseProblem(text), "vectorized", kH200)) << text;
  }
}

TEST(CandidatesTest, SmallMatricesAreTransposedInSmallTiles) {
  for (const char* text : {"transpose f32 25600x32x32 0,2,1", "transpose f64 12800x16x64 0,2,1",
                           "transpose f64 5688x48x48 0,2,1"}) {
    EXPECT_EQ(Untuned(text), "padded_vectorized") << text;
  }
  for (const char* text : {"transpose f32 8192x8192 1,0", "transpose f64 8192x8192 1,0",
                           "transpose f32 32x32 1,0", "transpose f32 11377x48x48 0,2,1",
                           "transpose f64 51200x16x16 0,2,1", "transpose f64 40x36864x48 1,0,2",
                           "transpose bf16 25600x32x32 0,2,1", "transpose f64 14400x31x33 0,2,1"}) {
    EXPECT_TRUE(IsUntuned(*ParseProblem(text), "swizzled_packed", kH200)) << text;
  }
}

}  // namespace
}  // namespace warpline
