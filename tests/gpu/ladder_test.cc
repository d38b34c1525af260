// The conformance of the ladder: every rung is right on all problems below that it takes, and takes some.
#include "kernels/bench/harness/ladder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "kernels/bench/harness/device.h"
#include "kernels/bench/report/labels.h"
#include "kernels/ladder/rungs.h"
#include "kernels/problem_text.h"

namespace warpline::bench {
namespace {

constexpr const char* kProblems[] = {
    // Sides of one element, less than a tile, whole tiles, whole vectors, neither; batches; axes that are
    // permuted further out.
    "transpose f32 1x1 1,0",
    "transpose f32 7x3 1,0",
    "transpose f32 64x96 1,0",
    "transpose f32 1000x1004 1,0",
    "transpose f32 33x1001 1,0",
    "transpose f64 66x130 1,0",
    "transpose f64 31x1027 1,0",
    "transpose f32 50x28x36 0,2,1",
    "transpose f32 5x17x33x9 3,1,2,0",
    "transpose i32 9x32x40 2,1,0",
    "transpose i64 6x10x34 1,2,0",
    "transpose u32 257x129 1,0 ld=160",
    // Every layout, a batch, a bias, an activation, another type of the result, long rows.
    "gemm f32 1x1x1",
    "gemm f32 64x96x80",
    "gemm f32 129x131x67",
    "gemm f32 132x260x68 nt",
    "gemm f32 136x264x72 tn",
    "gemm f32 40x36x44 tt x3",
    "gemm f32 256x256x64 bias relu",
    "gemm f64 66x70x34",
    "gemm f64 128x132x64",
    "gemm bf16 128x256x64",
    "gemm bf16 136x264x72 nt bias",
    "gemm f16 133x135x65",
    "gemm f16 128x128x128 >f32",
    "gemm i8 64x64x64",
    "gemm f32 100x104x48 lda=64 ldb=112",
    // Rows, columns, all, blocks; one element, few, many; each operation.
    "sum f32 1 all",
    "sum f32 100003 all",
    "sum f32 4194304 all",
    "sum f32 7x100000 1",
    "sum f32 5000x33 1",
    "sum f32 5000x33 0",
    "sum f32 100000x3 0",
    "sum f32 300x1001 1 ld=1100",
    "sum f32 300x1001 0 ld=1100",
    "sum f32 20x30x40 1",
    "sum f32 20x30x40 0,2",
    "sum f64 1000x1001 0",
    "sum f64 1000x1001 1",
    "sum i32 300x1001 0,1",
    "mean f32 300x1001 1",
    "max f32 300x1001 0",
    "min f64 300x1001 1",
    "max i32 70x1001 1",
    "argmax f32 70x1001 1",
    "argmin f64 70x1001 0",
    "norm1 f32 300x1001 1",
    "norm2 f32 300x1001 0",
    "sumsq f64 300x1001 1",
    "var f32 300x1001 1",
    "std f64 300x1001 0",
    "logsumexp f32 300x1001 1",
};

class LadderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why_not;
    device_ = OpenDevice(&why_not);
    if (!device_) GTEST_SKIP() << "no GPU on this machine: " << why_not;
  }
  std::optional<Device> device_;
};

template <typename ProblemT>
void AddNames(std::map<std::string, int>& ran) {
  const ProblemT problem;
  for (const auto& rung : LadderRungs(problem))
    ran[std::string(Name(OpOf(problem))) + " " + std::string(rung.name)] = 0;
}

std::map<std::string, int> NamesOfRungs() {
  std::map<std::string, int> ran;
  AddNames<TransposeProblem>(ran);
  AddNames<GemmProblem>(ran);
  AddNames<ReduceProblem>(ran);
  return ran;
}

// Needs no GPU.
TEST(LadderRungsTest, NoNameIsThatOfARowOfTheServer) {
  const auto check = [](const auto& problem) {
    for (const auto& rung : LadderRungs(problem)) {
      for (const auto& row : CudaTable(problem)) EXPECT_NE(row.name, rung.name);
      EXPECT_EQ(Choose(problem, rung.name, {}, Operands()).row, nullptr) << rung.name;
      EXPECT_EQ(ChooseOnLadder(problem, rung.name, {}, Operands()).row,
                Suits(rung, problem, {}) ? &rung : nullptr)
          << rung.name;
    }
  };
  check(TransposeProblem{.dtype = DType::kF32, .shape = {64, 64}, .perm = {1, 0}});
  check(GemmProblem{.dtype = DType::kF32, .m = 64, .n = 64, .k = 64, .lda = 64, .ldb = 64, .ldc = 64});
  check(ReduceProblem{.dtype = DType::kF32, .shape = {64}, .axes_mask = 1});
}

TEST_F(LadderTest, EveryRungIsRight) {
  std::map<std::string, int> ran = NamesOfRungs();
  for (const char* text : kProblems) {
    const auto problem = ParseProblem(text);
    ASSERT_TRUE(problem.ok()) << problem.status();
    const CaseResult result =
        LaunchOnce(*device_, {.problem = *problem, .variants = {}, .choice_only = false});
    for (const Row& row : result.rows) {
      EXPECT_FALSE(row.is_failure) << text << " " << row.name << ": " << row.status;
      const auto rung = ran.find(absl::StrCat(std::string(Name(OpOf(*problem))), " ", row.name));
      if (rung == ran.end()) continue;
      EXPECT_TRUE(row.measured()) << text << " " << row.name << ": " << row.status;
      ++rung->second;
    }
  }
  for (const auto& [name, count] : ran) EXPECT_GE(count, 1) << name;
}

}  // namespace
}  // namespace warpline::bench
