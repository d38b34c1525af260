// Tests which kernel takes what on an H200. These are rules, which need no GPU. The table is
// choices.txt; transposes have one of their own (tests/kernels/transpose/plan_test.cc).
//
//   WARPLINE_REWRITE_CHOICES=1 build/release/bin/engine_tests --gtest_filter='ChoicesTest.*'
//
// writes its kernels anew.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>
#include <variant>

#include "absl/strings/str_cat.h"
#include "kernels/cuda_choice.h"
#include "kernels/problem_text.h"
#include "tests/testing/choice_table.h"

namespace warpline {
namespace {

const DeviceTraits kH200 = {.compute_capability = 90, .multiprocessors = 132, .has_cublaslt = true};

const testing::ChoiceTable& Table() {
  static const testing::ChoiceTable table("tests/kernels/choices.txt");
  return table;
}

// The kernel where operands are aligned to 16 bytes, and the one where the first is not, if that is another.
std::string Kernels(const std::string& text) {
  const auto problem = ParseProblem(text);
  EXPECT_TRUE(problem.ok()) << problem.status();
  Operands unaligned;
  unaligned.in[0] = reinterpret_cast<const void*>(256 + SizeOf(DTypeOf(*problem)));
  const auto name = [&](const Operands& operands) {
    return std::visit([&](const auto& p) { return std::string(Choose(p, {}, kH200, operands).name()); },
                      *problem);
  };
  const std::string aligned = name(Operands()), other = name(unaligned);
  return aligned == other ? aligned : absl::StrCat(aligned, ", ", other);
}

TEST(ChoicesTest, AreThoseOfTheTable) { Table().Expect(Kernels); }

TEST(ChoicesTest, TheTableHasTheBreadthSuite) { Table().ExpectBreadth(/*transposes=*/false); }

TEST(ChoicesTest, EveryProblemHasAKernelOnEveryGpu) {
  for (const int capability : {75, 80, 89, 100, 120}) {
    for (const bool has_cublaslt : {false, true}) {
      const DeviceTraits traits = {
          .compute_capability = capability, .multiprocessors = 40, .has_cublaslt = has_cublaslt};
      for (const std::string& text : Table().problems()) {
        std::visit([&](const auto& p) { EXPECT_NE(Choose(p, {}, traits, Operands()).row, nullptr) << text; },
                   *ParseProblem(text));
      }
    }
  }
}

TEST(ChoicesTest, TheTableReachesEveryKernelOfReductions) {
  for (int shape = 0; shape < kReduceShapes; ++shape) {
    EXPECT_THAT(Table().Kernels(), ::testing::Contains(Name(static_cast<ReduceShape>(shape))));
  }
}

// Names of kernels, which reports and metrics have: few, and without the operation in them.
TEST(ChoicesTest, KernelsHaveFewNames) {
  std::set<std::string_view> names, groups;
  std::size_t rows = 0;
  const auto add = [&](const auto& table) {
    std::set<std::string_view> of_table;
    for (const auto& row : table) {
      EXPECT_TRUE(of_table.insert(row.name).second) << row.name;
      if (!row.group.empty()) groups.insert(row.group);
      names.insert(row.name);
      ++rows;
    }
  };
  add(CudaTransposeVariants());
  add(CudaGemmVariants());
  add(CudaReduceVariants());
  add(CudaMapVariants());
  EXPECT_LE(rows, 64u);
  EXPECT_THAT(groups, ::testing::ElementsAre("swizzled_packed", "vectorized"));
}

TEST(ChoicesTest, AGroupIsChosenAmongAndNotReported) {
  const auto name = [](const char* text, std::string_view variant) -> std::string_view {
    return std::visit(
        [&](const auto& p) {
          const auto choice = Choose(p, variant, kH200, Operands());
          return choice.row == nullptr ? std::string_view() : choice.name();
        },
        *ParseProblem(text));
  };
  EXPECT_EQ(name("transpose f32 25600x32x32 0,2,1", ""), "padded_vectorized");
  EXPECT_EQ(name("transpose f64 12800x16x64 0,2,1", ""), "padded_vectorized");
  EXPECT_EQ(name("transpose f64 5688x48x48 0,2,1", ""), "padded_vectorized");
  EXPECT_EQ(name("transpose f64 51200x16x16 0,2,1", ""), "box");
  EXPECT_EQ(name("transpose f32 25600x32x32 0,2,1", "swizzled_packed"), "box");
  EXPECT_EQ(name("transpose f32 33x31 1,0", "box"), "box");
  EXPECT_EQ(name("transpose f32 33x31 1,0", "tiles"), "") << "sides are no multiples of 16 bytes";
  EXPECT_EQ(name("sum f32 1048576 all", ""), "cub");
  EXPECT_EQ(name("sum f32 1048576 all", "vectorized"), "rows");
  EXPECT_EQ(name("sum f32 1048576 all", "columns"), "");
  EXPECT_EQ(name("add f32 4096", "interpreter"), "interpreter");
}

}  // namespace
}  // namespace warpline
