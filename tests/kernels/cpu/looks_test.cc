// Kernels of the CPU look whether their caller has left, however their work is divided: a test for each
// variant.
//
// With WARPLINE_MAX_LOOK_SECONDS=S (./quickstart test --full: 0.1) the time of this thread between two looks
// is checked as well, with products that take longer.
#include "kernels/cpu/looks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/cpu/cpu_variants.h"
#include "kernels/map/pair.h"
#include "kernels/operand_sizes.h"

namespace warpline {
namespace {

// 0: not asked for.
double MaxLookSeconds() {
  const char* const seconds = std::getenv("WARPLINE_MAX_LOOK_SECONDS");
  return seconds == nullptr ? 0 : std::atof(seconds);
}

// Other processes do not count.
double ThreadSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Says that nobody waits any more at the look number `ends_at`, and counts the looks.
struct Caller {
  int ends_at = 0;
  int looks = 0;
  double last = ThreadSeconds(), longest = 0;  // time between two looks

  bool Look() {
    const double now = ThreadSeconds();
    longest = std::max(longest, now - std::exchange(last, now));
    return ++looks >= ends_at;
  }
  Interest interest() {
    return {[](const void* of) { return const_cast<Caller*>(static_cast<const Caller*>(of))->Look(); }, this};
  }
};

// The looks of a variant that is stopped at the first one, or never.
template <typename ProblemT>
int Looks(const CpuVariant<ProblemT>& variant, const ProblemT& problem, bool stops) {
  std::vector<std::unique_ptr<void, decltype(&std::free)>> memory;
  const auto allocate = [&](std::size_t bytes) {
    return memory.emplace_back(std::calloc(bytes + 64, 1), &std::free).get();
  };
  Operands operands;
  std::size_t number = 0;
  for (const OperandSize& size : InputSizes(problem)) operands.in[number++] = allocate(size.Bytes());
  operands.out = allocate(OutputSize(problem).Bytes());
  if (!std::is_same_v<ProblemT, MapProblem>) {
    operands.further[0] =
        allocate(static_cast<std::size_t>(OutputSize(problem).count) * sizeof(std::int64_t));
  }
  std::vector<StepScalars> scalars(static_cast<std::size_t>(ScalarCount(problem)));
  operands.scalars = scalars.data();
  if constexpr (std::is_same_v<ProblemT, CompressProblem>) {
    std::memset(memory[1].get(), 1, static_cast<std::size_t>(problem.rows));
  }
  operands.workspace_bytes = variant.workspace_bytes(problem, {});
  operands.workspace = allocate(operands.workspace_bytes);
  Caller caller{.ends_at = stops ? 1 : 1'000'000};
  operands.interest = caller.interest();
  variant.launch(problem, operands);
  caller.Look();  // the last stretch, too
  if (MaxLookSeconds() > 0) {
    EXPECT_LE(caller.longest, MaxLookSeconds()) << variant.name << ": seconds between two looks";
  }
  return caller.looks - 1;
}

template <typename ProblemT>
void ExpectLooks(std::span<const CpuVariant<ProblemT>> table, std::string_view name, const ProblemT& problem,
                 const char* what) {
  for (const auto& variant : table) {
    if (variant.name != name) continue;
    ASSERT_TRUE(variant.supports(problem, {})) << name << ": " << what;
    // More than one, since its work is several times that between two looks.
    EXPECT_GE(Looks(variant, problem, /*stops=*/false), 2) << name << ": " << what;
    EXPECT_EQ(Looks(variant, problem, /*stops=*/true), 1)
        << name << " goes on after it was stopped: " << what;
    return;
  }
  ADD_FAILURE() << "there is no variant " << name;
}

constexpr std::int64_t kMany = 5 * cpu::Looks::kWork / 2;

TEST(LooksTest, Transposes) {
  ExpectLooks(CpuTransposeVariants(), "eigen", {DType::kU8, {kMany / 64, 64}, {1, 0}}, "blocks");
  ExpectLooks(CpuTransposeVariants(), "eigen", {DType::kF64, {2, kMany}, {0, 1}}, "two long rows");
  ExpectLooks(CpuTransposeVariants(), "reference", {DType::kU8, {kMany / 64, 64}, {1, 0}}, "elements");
}

GemmProblem Product(std::int64_t m, std::int64_t n, std::int64_t k, DType dtype = DType::kF32) {
  GemmProblem problem{.dtype = dtype, .m = m, .n = n, .k = k, .lda = k, .ldb = n, .ldc = n};
  problem.batch = GemmBatch::Dense(1);
  return problem;
}

TEST(LooksTest, Products) {
  ExpectLooks(CpuGemmVariants(), "openblas", Product(4096, 1024, 512), "blocks");
  ExpectLooks(CpuGemmVariants(), "eigen", Product(512, 512, 512, DType::kI32), "blocks");
  if (MaxLookSeconds() > 0) {
    for (const DType dtype : {DType::kF32, DType::kF64, DType::kC128}) {
      ExpectLooks(CpuGemmVariants(), "openblas", Product(2048, 2048, 2048, dtype), "blocks");
      ExpectLooks(CpuGemmVariants(), "openblas", Product(64, 64, 1 << 20, dtype), "long sums");
    }
  }
  ExpectLooks(CpuGemmVariants(), "reference", Product(200, 200, 200), "sums");
  ExpectLooks(CpuGemmVariants(), "reference", Product(1, 1, kMany), "one long sum");
}

TEST(LooksTest, Reductions) {
  const auto problem = [](ReduceOp op, const Shape& shape, std::uint32_t mask) {
    return ReduceProblem{.op = op, .dtype = DType::kF32, .shape = shape, .axes_mask = mask};
  };
  for (const auto& [shape, mask] : {std::pair(Shape{kMany}, 1u), std::pair(Shape{4, kMany / 4}, 1u),
                                    std::pair(Shape{kMany / 4, 4}, 1u), std::pair(Shape{kMany / 4, 4}, 2u)}) {
    const std::string what = ToString(shape) + (mask == 1 ? " along the first axis" : " along the last axis");
    ExpectLooks(CpuReduceVariants(), "eigen", problem(ReduceOp::kSum, shape, mask), what.c_str());
    ExpectLooks(CpuReduceVariants(), "passes", problem(ReduceOp::kVar, shape, mask), what.c_str());
    ExpectLooks(CpuReduceVariants(), "passes", problem(ReduceOp::kCountNonzero, shape, mask), what.c_str());
    ExpectLooks(CpuReduceVariants(), "reference", problem(ReduceOp::kArgmax, shape, mask), what.c_str());
  }
}

TEST(LooksTest, Maps) {
  const MapProblem copy{.dtype = DType::kF64,
                        .shape = {kMany},
                        .inputs = {{DType::kF64, {1}}},
                        .nodes = {{MapOp::kCast, DType::kF64, {0}}},
                        .further = {},
                        .out_strides = {}};
  ExpectLooks(CpuMapVariants(), "blocks", copy, "a copy");
  // A hundred instructions over as many elements as one look at the clock was between once.
  MapProblem deep = copy;
  deep.shape = {65536};
  deep.nodes = {{MapOp::kMultiply, DType::kF64, {0, 0}}};
  for (std::int16_t i = 1; i < 100; ++i) deep.nodes.push_back({MapOp::kRemainder, DType::kF64, {i, 0}});
  ExpectLooks(CpuMapVariants(), "blocks", deep, "many instructions");
}

TEST(LooksTest, IndexedSteps) {
  const TakeProblem elements{.shape = {kMany}, .index_strides = {1}, .axis_size = 7, .axis_stride = 1};
  ExpectLooks(CpuTakeVariants(), "runs", elements, "single elements");
  const TakeProblem rows{.shape = {2, kMany},
                         .x_strides = {0, 1},
                         .index_strides = {1, 0},
                         .axis_size = 1,
                         .axis_stride = kMany};
  ExpectLooks(CpuTakeVariants(), "runs", rows, "long rows");
  const PutProblem puts{.shape = {1}, .index_shape = {kMany}, .index_strides = {1}, .value_strides = {1}};
  ExpectLooks(CpuPutVariants(), "in_order", puts, "many indices");
  const PutProblem large{.dtype = DType::kF64, .shape = {2 * kMany}, .index_shape = {1}};
  ExpectLooks(CpuPutVariants(), "in_order", large, "a large array");
  ExpectLooks(CpuCompressVariants(), "in_order", {.dtype = DType::kU8, .rows = kMany, .width = 1},
              "many rows");
  ExpectLooks(CpuCompressVariants(), "in_order", {.dtype = DType::kF64, .rows = 1, .width = 2 * kMany},
              "one row");
}

TEST(LooksTest, OrderedSteps) {
  const auto scan = [](std::int64_t outer, std::int64_t count, std::int64_t inner) {
    return ScanProblem{.dtype = DType::kF32, .outer = outer, .count = count, .inner = inner};
  };
  for (const ScanProblem& problem :
       {scan(1, kMany, 1), scan(kMany, 1, 1), scan(1, 4, kMany / 4), scan(1, kMany / 4, 4)}) {
    ExpectLooks(CpuScanVariants(), "in_order", problem, "a scan");
  }
  const auto sort = [](std::int64_t rows, std::int64_t count, std::int64_t taken) {
    return SortProblem{.dtype = DType::kU16, .rows = rows, .count = count, .taken = taken, .indices = true};
  };
  for (const SortProblem& problem : {sort(1, 1 << 20, 1 << 20), sort(1 << 16, 16, 16), sort(1, kMany, 3)}) {
    ExpectLooks(CpuSortVariants(), "keys", problem, "a sort");
  }
  SortProblem selection = sort(1, 1 << 21, 1 << 21);
  selection.kth = {1 << 20};
  selection.kth_count = 1;
  ExpectLooks(CpuSortVariants(), "keys", selection, "a selection");
  ExpectLooks(CpuSearchVariants(), "bisect", {.count = 1024, .needles = 1 << 18}, "a search");
  const SearchProblem sorter{.count = kMany, .needles = 1, .has_sorter = true};
  ExpectLooks(CpuSearchVariants(), "bisect", sorter, "a large sorter");
}

TEST(LooksTest, AStopStays) {
  Caller caller{.ends_at = 1};
  cpu::Looks looks(caller.interest());
  EXPECT_FALSE(looks.Stop(cpu::Looks::kWork - 1));
  EXPECT_TRUE(looks.Stop(1));
  EXPECT_TRUE(looks.Stop(1));
  EXPECT_TRUE(looks.Stop(cpu::Looks::kWork));
  EXPECT_EQ(caller.looks, 1);
}

}  // namespace
}  // namespace warpline
