#include "server/tuning/failed_variants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace warpline {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kProblem[] = "gemm f32 64x64x64";
const FailedVariants kFailed = {{kProblem, {"cublas:2", "mma"}}, {"sum f32 4096 all", {"cublas:3"}}};

TEST(FailedVariantsTest, WhatHasFailedForTheProblemIsLeftOut) {
  std::vector<std::string_view> candidates = {"cublas", "cublas:2", "cublas:3", "mma", "gemv"};
  ASSERT_TRUE(LeaveOutFailed(kFailed, kProblem, candidates).ok());
  EXPECT_THAT(candidates, ElementsAre("cublas", "cublas:3", "gemv"));
}

TEST(FailedVariantsTest, OfAProblemOfWhichNothingHasFailedAllAreLeft) {
  std::vector<std::string_view> candidates = {"cublas:2", "mma"};
  ASSERT_TRUE(LeaveOutFailed(kFailed, "gemm f32 64x64x65", candidates).ok());
  EXPECT_THAT(candidates, ElementsAre("cublas:2", "mma"));
}

TEST(FailedVariantsTest, WithoutWhatRunsUntunedNothingIsTried) {
  std::vector<std::string_view> candidates = {"mma", "cublas:3"};
  const absl::Status status = LeaveOutFailed(kFailed, kProblem, candidates);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("with mma, which is what runs without tuning"));
}

}  // namespace
}  // namespace warpline
