#include "server/device/kernel_choices.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "kernels/problem_text.h"

namespace warpline {
namespace {

constexpr DeviceTraits kH200 = {.compute_capability = 90, .multiprocessors = 132, .has_cublaslt = true};

class KernelChoicesTest : public ::testing::Test {
 protected:
  KernelChoicesTest() { choices_.CountIn(metrics_.KernelChoices(0)); }

  // Returns the name of the choice; "" if nothing serves.
  std::string Get(const Problem& problem, std::string_view variant = {}, const Operands& operands = {},
                  const DeviceTraits& traits = kH200) {
    return std::visit(
        [&](const auto& p) {
          const auto choice = choices_.Get(p, variant, traits, operands);
          return choice == nullptr ? std::string() : std::string(choice->name());
        },
        problem);
  }
  std::string Get(const char* text, std::string_view variant = {}) {
    return Get(*ParseProblem(text), variant);
  }
  static Operands At(std::uintptr_t in, std::uintptr_t second, std::uintptr_t out) {
    Operands operands;
    operands.in[0] = reinterpret_cast<const void*>(in);
    operands.in[1] = reinterpret_cast<const void*>(second);
    operands.out = reinterpret_cast<void*>(out);
    return operands;
  }
  double made() { return metrics_.KernelChoices(0).Value(); }

  Metrics metrics_;
  KernelChoices choices_;
};

TEST_F(KernelChoicesTest, TenThousandRequestsOfFiveKindsTakeFiveChoices) {
  const char* const kinds[] = {"transpose f32 33x31 1,0", "gemm bf16 64x64x64", "sum f32 100x100 1",
                               "add f32 1000", "cast f32 1000 >f16"};
  for (int i = 0; i < 10000; ++i) EXPECT_NE(Get(kinds[i % 5]), "");
  EXPECT_EQ(made(), 5);
}

// Each of these must be a choice of its own, or a launch would get the arguments of another.
TEST_F(KernelChoicesTest, EverythingThatAChoiceDependsOnTellsItApart) {
  const std::vector<const char*> problems = {"transpose f32 40x50x60 2,1,0",
                                             "transpose u8 40x50x60 2,1,0",
                                             "transpose f32 40x50x60 1,0,2",
                                             "transpose f32 40x50x61 2,1,0",
                                             "transpose f32 40x50x60 2,1,0 ld=64",
                                             "sum f32 40x50 1",
                                             "max f32 40x50 1",
                                             "sum f32 40x50 0",
                                             "sum f32 40x50 1 ld=64",
                                             "sum f32 40x50 1 >f64",
                                             "sum i32 40x50 1",
                                             "gemm f32 64x32x16",
                                             "gemm f32 64x32x17",
                                             "gemm f32 64x32x16 nt",
                                             "gemm f32 64x32x16 tn",
                                             "gemm bf16 64x32x16",
                                             "gemm f32 64x32x16 batch=3 a=1 b=1 c=1",
                                             "add f32 100",
                                             "add f32 101",
                                             "add f16 100",
                                             "cast f32 100 >f16",
                                             "cast f32 100 >f64",
                                             "scale f32 100"};
  double want = 0;
  for (const char* text : problems) {
    ASSERT_TRUE(ParseProblem(text).ok()) << text;
    EXPECT_NE(Get(text), "") << text;
    EXPECT_EQ(made(), ++want) << text;
  }
  for (const char* text : problems) Get(text);
  EXPECT_EQ(made(), want);
}

TEST_F(KernelChoicesTest, VariantsAlignmentsAndMultiprocessorsTellApartToo) {
  const Problem transpose = *ParseProblem("transpose f32 64x64 1,0");
  EXPECT_EQ(Get(transpose), "tiles");
  EXPECT_EQ(Get(transpose, "box"), "box");
  EXPECT_EQ(Get(transpose, {}, At(4, 0, 0)), "odd_tiles");
  EXPECT_EQ(Get(transpose, {}, At(0, 0, 4)), "odd_tiles");
  EXPECT_EQ(Get(transpose, {}, At(256, 0, 512)), "tiles");
  DeviceTraits fewer = kH200;
  fewer.multiprocessors = 100;
  EXPECT_EQ(Get(transpose, {}, {}, fewer), "tiles");
  EXPECT_EQ(made(), 5) << "256 and 512 are aligned as 0 is";
  const Problem add = *ParseProblem("add f32 1000");
  EXPECT_EQ(Get(add), "packs");
  EXPECT_EQ(Get(add, {}, At(0, 4, 0)), "interpreter") << "of the second operand, too";
}

TEST_F(KernelChoicesTest, ANameThatCannotRunTheProblemIsNotCounted) {
  EXPECT_EQ(Get("transpose f32 33x31 1,0", "tiles"), "");
  EXPECT_EQ(Get("sum f32 100x100 1", "columns"), "");
  EXPECT_EQ(Get("sum f32 100x100 1", "fast"), "");
  EXPECT_EQ(made(), 0);
}

TEST_F(KernelChoicesTest, AreBoundedAndSharedByThreads) {
  KernelChoices few(/*max_of_each_operation=*/8);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&few] {
      for (int i = 0; i < 2000; ++i) {
        TransposeProblem problem{DType::kF32, {33 + i % 20, 31}, {1, 0}};
        const auto choice = few.Get(problem, {}, kH200, Operands());
        ASSERT_EQ(choice->name(), "box") << "a choice in use outlives its place";
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace warpline
