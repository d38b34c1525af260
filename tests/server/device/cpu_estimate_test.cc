// Tests the estimates of the cpu backend. tests/bench/cost_bench shows how far they are from the actual cost.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/map/pair.h"
#include "server/device/cpu_backend.h"
#include "server/device/cpu_rates.h"

namespace warpline {
namespace {

class CpuEstimateTest : public ::testing::Test {
 protected:
  // `steps` times the same step.
  double Seconds(const Problem& problem, std::string_view variant = "", int steps = 1) {
    Program program;
    program.tensors = {{DType::kF32, {1}, 4}};
    program.num_inputs = 1;
    for (int i = 0; i < steps; ++i) {
      program.tensors.push_back({DType::kF32, {1}, 4});
      program.outputs.push_back(i + 1);
      program.steps.push_back({.problem = problem,
                               .variant = std::string(variant),
                               .inputs = {0},
                               .output = i + 1,
                               .scalars = {}});
    }
    return backend_->Compile(program, PlanMemory(program))->seconds;
  }

  // One of each operation on about n x n elements.
  static std::vector<Problem> Problems(std::int64_t n) {
    TransposeProblem transpose{.shape = {n, n}};
    transpose.perm = {1, 0};
    return {transpose,
            GemmProblem{.m = n, .n = n, .k = n, .lda = n, .ldb = n, .ldc = n},
            GemmProblem{.dtype = DType::kF16, .m = n, .n = n, .k = n, .lda = n, .ldb = n, .ldc = n},
            ReduceProblem{.shape = {n, n}, .axes_mask = 3},
            ReduceProblem{.op = ReduceOp::kLogSumExp, .shape = {n, n}, .axes_mask = 1},
            ToMap({.op = PairOp::kAdd, .shape = {n, n}, .x_strides = {1, 0}, .y_strides = {0, 1}})};
  }

  std::unique_ptr<Backend> backend_ = *CreateCpuBackend({});
};

TEST_F(CpuEstimateTest, EveryRateIsPositive) {
  const DeviceRates rates = MeasureCpuRates();
  EXPECT_GT(rates.bytes_per_second, 0);
  EXPECT_GT(rates.tf32_flops_per_second, 0);
  EXPECT_GT(rates.serial_seconds, 0);
  EXPECT_GT(rates.launch_seconds, 0);
  for (DType dtype : kAllDTypes) {
    if (!IsGemmInput(dtype)) continue;
    EXPECT_GT(rates.flops_per_second[static_cast<std::size_t>(dtype)], 0) << Name(dtype);
  }
}

TEST_F(CpuEstimateTest, LargerProblemsAndMoreStepsTakeLonger) {
  const std::vector<VariantInfo> variants = backend_->Variants();
  for (std::size_t i = 0; i < Problems(1).size(); ++i) {
    std::vector<std::string_view> names = {""};
    for (const VariantInfo& variant : variants) {
      if (variant.op == OpOf(Problems(1)[i])) names.push_back(variant.name);
    }
    for (std::string_view name : names) {
      double last = 0;
      for (std::int64_t n : {1, 16, 256, 4096, 65536}) {
        const Problem problem = Problems(n)[i];
        if (!backend_->CheckVariant(problem, name).ok()) continue;
        const double seconds = Seconds(problem, name);
        EXPECT_GT(seconds, last) << Name(OpOf(problem)) << " " << name << " " << n;
        EXPECT_DOUBLE_EQ(Seconds(problem, name, 4), 4 * seconds);
        last = seconds;
      }
    }
  }
}

TEST_F(CpuEstimateTest, WhatABroadcastWritesCounts) {
  const Problem large = Problems(8192).back(), small = Problems(1024).back();
  EXPECT_GT(Seconds(large), 30 * Seconds(small));
}

}  // namespace
}  // namespace warpline
