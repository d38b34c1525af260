// Tests which kernel transposes what, on an H200. The table is choices.txt, read as a diff when it changes:
//
//   WARPLINE_REWRITE_CHOICES=1 build/release/bin/kernels_tests --gtest_filter='TransposeChoicesTest.*'
//
// writes its kernels anew. Alignments and other GPUs are below.
#include "kernels/transpose/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/problem_text.h"
#include "tests/kernels/transpose/problem.h"
#include "tests/testing/choice_table.h"

namespace warpline {
namespace {

constexpr DeviceTraits kH200 = {.compute_capability = 90, .multiprocessors = 132, .has_cublaslt = true};
const testing::ChoiceTable& Table() {
  static const testing::ChoiceTable table("tests/kernels/transpose/choices.txt");
  return table;
}

const void* At(std::uintptr_t address) { return reinterpret_cast<const void*>(address); }

TransposePlan Plan(std::string_view text, std::uintptr_t in = 256, std::uintptr_t out = 512,
                   const DeviceTraits& traits = kH200) {
  const auto problem = ParseProblem(text);
  EXPECT_TRUE(problem.ok()) << problem.status();
  return PlanTranspose(std::get<TransposeProblem>(*problem), traits, At(in), At(out));
}
std::string Kernel(const std::string& text, std::uintptr_t in = 256, std::uintptr_t out = 512,
                   const DeviceTraits& traits = kH200) {
  return std::string(Name(Plan(text, in, out, traits).kernel));
}

// Compares what each launch reads first, not every part of every shape.
void ExpectSame(const TransposePlan& a, const TransposePlan& b, const std::string& line) {
  EXPECT_EQ(a.kernel, b.kernel) << line;
  EXPECT_EQ(a.element_bytes, b.element_bytes) << line;
  EXPECT_EQ(a.in_bytes, b.in_bytes) << line;
  ASSERT_EQ(a.shape.index(), b.shape.index()) << line;
  if (const auto* walk = std::get_if<TileWalk>(&a.shape)) {
    EXPECT_EQ(walk->nx, std::get<TileWalk>(b.shape).nx) << line;
  } else if (const auto* transpose = std::get_if<CanonicalTranspose>(&a.shape)) {
    EXPECT_EQ(transpose->dims[0], std::get<CanonicalTranspose>(b.shape).dims[0]) << line;
  } else if (const auto* box = std::get_if<PackedBox>(&a.shape)) {
    EXPECT_EQ(box->boxes, std::get<PackedBox>(b.shape).boxes) << line;
    EXPECT_EQ(box->SharedBytes(), std::get<PackedBox>(b.shape).SharedBytes()) << line;
  } else if (const auto* blocks = std::get_if<SmallBlocks>(&a.shape)) {
    EXPECT_EQ(blocks->box_bytes, std::get<SmallBlocks>(b.shape).box_bytes) << line;
  }
}

// The kernel where operands are aligned to 16 bytes, and the one where both are aligned to an element only.
std::string Kernels(const std::string& problem) {
  const auto parsed = ParseProblem(problem);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  const std::size_t element = SizeOf(std::get<TransposeProblem>(*parsed).dtype);
  return absl::StrCat(Kernel(problem), ", ", Kernel(problem, 256 + element, 512 + element));
}

TEST(TransposeChoicesTest, AreThoseOfTheTable) { Table().Expect(Kernels); }

TEST(TransposeChoicesTest, TheTableHasTheBreadthSuite) { Table().ExpectBreadth(/*transposes=*/true); }

TEST(TransposePlanTest, OfAddressesOnlyTheRemaindersBySixteenCount) {
  for (const std::string& problem : Table().problems()) {
    const std::size_t element = SizeOf(std::get<TransposeProblem>(*ParseProblem(problem)).dtype);
    for (std::size_t offset = 0; offset < 16; offset += element) {
      ExpectSame(Plan(problem, 256 + offset, 512), Plan(problem, 4096 - 16 + offset, 1 << 20), problem);
      ExpectSame(Plan(problem, 256, 512 + offset), Plan(problem, 1 << 20, 4096 - 16 + offset), problem);
    }
  }
}

TEST(TransposePlanTest, EveryGpuHasAKernelForEachProblem) {
  // T4, A100, RTX 4090, B200: no rule reads more of a GPU than this.
  for (const auto& [capability, multiprocessors] :
       std::vector<std::pair<int, int>>{{75, 40}, {80, 108}, {89, 128}, {100, 148}}) {
    const DeviceTraits traits = {.compute_capability = capability, .multiprocessors = multiprocessors};
    for (const std::string& problem : Table().problems()) {
      const TransposePlan plan = Plan(problem, 256, 512, traits);
      // Without an opt-in, a CTA has 48 KiB of shared memory on every GPU. Blocks take two tiles.
      constexpr std::int64_t kMaxBytes = 48 << 10;
      if (const auto* box = std::get_if<PackedBox>(&plan.shape)) {
        EXPECT_LE(box->SharedBytes(), kMaxBytes) << problem;
      }
      if (const auto* blocks = std::get_if<SmallBlocks>(&plan.shape)) {
        EXPECT_LE(2 * std::int64_t{blocks->box_bytes}, kMaxBytes) << problem;
      }
    }
  }
}

TEST(TransposePlanTest, TheTableReachesEveryKernel) {
  const std::vector<std::string> reached = Table().Kernels();
  for (int kernel = 0; kernel < kTransposeKernels; ++kernel) {
    const std::string name(Name(static_cast<TransposeKernel>(kernel)));
    EXPECT_FALSE(name.empty());
    EXPECT_THAT(reached, ::testing::Contains(name));
  }
}

TEST(TransposePlanTest, BytesAreThoseOfTheInputFromItsFirstToItsLastElement) {
  EXPECT_EQ(Plan("transpose f32 33x31 1,0").in_bytes, 4 * 33 * 31);
  EXPECT_EQ(Plan("transpose f32 33x31 1,0 ld=40").in_bytes, 4 * (32 * 40 + 31));
  const TransposePlan rows = Plan("transpose u8 100x50x128 1,0,2");
  EXPECT_EQ(rows.kernel, TransposeKernel::kRows);
  EXPECT_EQ(rows.element_bytes, 16u) << "the widest that rows and addresses are multiples of";
  EXPECT_EQ(rows.in_bytes, 100 * 50 * 128);
}

TEST(TransposePlanTest, WithoutElementsThereIsNothingToDo) {
  const TransposeProblem empty = MakeTranspose({0, 3}, {1, 0});
  EXPECT_EQ(PlanTranspose(empty, kH200, nullptr, nullptr).in_bytes, 0);
  for (int kernel = 0; kernel < kTransposeKernels; ++kernel) {
    const auto plan = PlanTransposeBy(static_cast<TransposeKernel>(kernel), empty, kH200, nullptr, nullptr);
    ASSERT_TRUE(plan.has_value());
    EXPECT_EQ(plan->in_bytes, 0);
  }
}

TEST(TransposePlanTest, WhatIsChosenCanAlsoBeAskedFor) {
  for (const std::string& problem : Table().problems()) {
    const auto parsed = std::get<TransposeProblem>(*ParseProblem(problem));
    for (const std::size_t shift : {std::size_t{0}, SizeOf(parsed.dtype)}) {
      const TransposePlan chosen = Plan(problem, 256 + shift, 512 + shift);
      const auto asked = PlanTransposeBy(chosen.kernel, parsed, kH200, At(256 + shift), At(512 + shift));
      ASSERT_TRUE(asked.has_value()) << problem;
      ExpectSame(*asked, chosen, problem);
      EXPECT_TRUE(shift != 0 || CanTranspose(chosen.kernel, parsed, kH200)) << problem;
    }
  }
}

}  // namespace
}  // namespace warpline
