// Tests which kernel takes what on an H200 without tuning. These are rules, which need no GPU. The table is
// choices.txt; transposes have one of their own (tests/kernels/transpose/plan_test.cc).
//
//   WARPLINE_REWRITE_CHOICES=1 build/release/bin/engine_tests --gtest_filter='ChoicesTest.*'
//
// writes its kernels anew.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/cuda_variants.h"
#include "kernels/problem_text.h"
#include "kernels/reduce/vector_plan.h"
#include "server/tuning/candidates.h"
#include "tests/testing/choice_table.h"

namespace warpline {
namespace {

const DeviceTraits kH200 = {.compute_capability = 90, .multiprocessors = 132, .has_cublaslt = true};

const testing::ChoiceTable& Table() {
  static const testing::ChoiceTable table("tests/server/tuning/choices.txt");
  return table;
}

std::string ShapeOf(const ReduceProblem& problem, bool aligned_base) {
  return std::string(Name(PlanVectors(problem, Canonicalize(problem), aligned_base, kH200).shape));
}

// The variant. For `vectorized`, which has several kernels, also the one where the input is aligned to 16
// bytes, and where it is not.
std::string Kernels(const std::string& text) {
  const auto problem = ParseProblem(text);
  EXPECT_TRUE(problem.ok()) << problem.status();
  const std::string variant(UntunedVariant(*problem, kH200));
  if (variant != "vectorized") return variant;
  const auto& reduce = std::get<ReduceProblem>(*problem);
  return absl::StrCat(variant, " ", ShapeOf(reduce, true), ", ", ShapeOf(reduce, false));
}

TEST(ChoicesTest, AreThoseOfTheTable) { Table().Expect(Kernels); }

TEST(ChoicesTest, TheTableHasTheBreadthSuite) { Table().ExpectBreadth(/*transposes=*/false); }

TEST(ChoicesTest, EveryProblemHasAKernelOnEveryGpu) {
  for (const int capability : {75, 80, 89, 100, 120}) {
    for (const bool has_cublaslt : {false, true}) {
      const DeviceTraits traits = {
          .compute_capability = capability, .multiprocessors = 40, .has_cublaslt = has_cublaslt};
      for (const std::string& text : Table().problems()) {
        EXPECT_NE(UntunedVariant(*ParseProblem(text), traits), "") << text << " on " << capability;
      }
    }
  }
}

TEST(ChoicesTest, TheTableReachesEveryKernelOfReductions) {
  for (int shape = 0; shape <= static_cast<int>(ReduceShape::kPackedColumns); ++shape) {
    EXPECT_THAT(Table().Kernels(), ::testing::Contains(Name(static_cast<ReduceShape>(shape))));
  }
}

}  // namespace
}  // namespace warpline
