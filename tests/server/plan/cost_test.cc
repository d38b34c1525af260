// Estimates of what programs cost, by rates that are easy to calculate with.
#include "server/plan/cost.h"

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "kernels/map/pair.h"
#include "server/device/select_variant.h"

namespace warpline {
namespace {

// 1 GB/s, 1 GFLOP/s (tf32: 4), 1 us an element one by one, 1 ms a launch.
DeviceRates Rates() {
  DeviceRates rates;
  rates.bytes_per_second = 1e9;
  rates.flops_per_second.fill(1e9);
  rates.tf32_flops_per_second = 4e9;
  rates.serial_seconds = 1e-6;
  rates.launch_seconds = 1e-3;
  return rates;
}

MapProblem BroadcastAdd(std::int64_t rows, std::int64_t columns) {
  return ToMap({.op = PairOp::kAdd, .shape = {rows, columns}, .x_strides = {1, 0}, .y_strides = {0, 1}});
}

GemmProblem Square(std::int64_t n) {
  return {.dtype = DType::kF32, .m = n, .n = n, .k = n, .lda = n, .ldb = n, .ldc = n};
}

TEST(CostTest, AStepTakesTheLongerOfMovingItsBytesAndItsArithmetic) {
  // 2 * 1000^3 operations, 12 MB.
  EXPECT_DOUBLE_EQ(StepSeconds(Square(1000), {}, Rates()), 2 + 1e-3);
  // 2 * 10^6 operations, 8 MB and a little.
  GemmProblem thin = Square(1000);
  thin.k = 1;
  EXPECT_DOUBLE_EQ(StepSeconds(thin, {}, Rates()), 4.008e-3 + 1e-3);
  GemmProblem tf32 = Square(1000);
  tf32.precision = Precision::kTf32;
  EXPECT_DOUBLE_EQ(StepSeconds(tf32, {}, Rates()), 0.5 + 1e-3);
}

TEST(CostTest, WhatABroadcastWritesCounts) {
  // 16 KB come in and 4 MB go out.
  EXPECT_NEAR(StepSeconds(BroadcastAdd(1000, 1000), {}, Rates()), 4e-3 + 8e-6 + 1e-3, 1e-9);
}

TEST(CostTest, FactorsAndLaunchesAreTheVariants) {
  EXPECT_DOUBLE_EQ(StepSeconds(Square(1000), {.arithmetic = 100, .launches = 7}, Rates()), 200 + 7e-3);
  EXPECT_DOUBLE_EQ(StepSeconds(Square(1000), {.transfer = 1000}, Rates()), 12 + 1e-3);
  EXPECT_DOUBLE_EQ(StepSeconds(Square(1000), {.serial = 1e9}, Rates()), 1000 + 1e-3);
}

// Two rows for every type of problem; the second does one element after the other.
template <typename ProblemT>
struct Table {
  using Row = Variant<ProblemT, int()>;
  static bool AnyType(DType) { return true; }
  static bool Always(const ProblemT&, const DeviceTraits&) { return true; }
  static std::size_t NoWorkspace(const ProblemT&, const DeviceTraits&) { return 0; }
  static VariantCost Serial(const ProblemT& problem, const DeviceTraits&) {
    if constexpr (std::is_same_v<ProblemT, ReduceProblem>) return {.serial = 1.0 * problem.ReducedCount()};
    return {};
  }
  static constexpr Row kRows[] = {
      {"fast", "", true, AnyType, Always, NoWorkspace, nullptr},
      {"serial", "", true, AnyType, Always, NoWorkspace, nullptr, nullptr, nullptr, Serial},
  };
};

// `steps` sums of [count] by the variant.
Program Sums(std::int64_t count, int steps, const std::string& variant) {
  Program program;
  program.tensors = {{DType::kF32, {count}, static_cast<std::size_t>(count) * 4}};
  program.num_inputs = 1;
  for (int i = 0; i < steps; ++i) {
    program.tensors.push_back({DType::kF32, {}, 4});
    program.outputs.push_back(i + 1);
    program.steps.push_back(
        {ReduceProblem{.shape = {count}, .axes_mask = 1}, variant, {0}, program.outputs.back(), {}});
  }
  return program;
}

double Seconds(const Program& program) {
  return ProgramSeconds(program, Rates(), [](const Step& step, std::size_t) {
    return std::visit(
        [&]<typename ProblemT>(const ProblemT& problem) {
          const std::span<const typename Table<ProblemT>::Row> table(Table<ProblemT>::kRows);
          const auto* row = FindVariant(table, problem, step.variant, {});
          return row != nullptr && row->cost != nullptr ? row->cost(problem, {}) : VariantCost();
        },
        step.problem);
  });
}

TEST(CostTest, AProgramTakesAsLongAsItsStepsByTheirVariants) {
  EXPECT_NEAR(Seconds(Sums(1000, 1, "")), 4.004e-6 + 1e-3, 1e-12);
  EXPECT_NEAR(Seconds(Sums(1000, 3, "")), 3 * (4.004e-6 + 1e-3), 1e-12);
  EXPECT_NEAR(Seconds(Sums(1000, 3, "serial")), 3 * (1e-3 + 1e-3), 1e-12);
}

TEST(CostTest, MoreElementsAndMoreStepsNeverTakeLess) {
  double last = 0;
  for (std::int64_t count : {1, 2, 1000, 1 << 20, 1 << 28}) {
    for (int steps : {1, 2, 64}) {
      const double seconds = Seconds(Sums(count, steps, "serial"));
      EXPECT_GE(seconds, steps == 1 ? 0 : last);
      EXPECT_GE(seconds, Seconds(Sums(count, steps, "")));
      last = seconds;
    }
  }
}

TEST(CostTest, AStepWithoutAResultTakesNothing) {
  Program program = Sums(1000, 1, "serial");
  program.tensors[1].shape = {0, 1 << 30};
  EXPECT_EQ(Seconds(program), 0);
}

}  // namespace
}  // namespace warpline
