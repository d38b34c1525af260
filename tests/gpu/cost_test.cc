// Estimates for the cuda backend against measured times (docs/benchmarks/history.md#2026-11-21-ladder). The
// times of wide_loads and mma are newer (docs/benchmarks/2026-11-23-h200-ladder.md, history.md#2026-11-23-mma
// in the same folder). Needs no GPU.
#include "server/plan/cost.h"

#include <gtest/gtest.h>

#include <string>

#include "kernels/cuda_choice.h"
#include "server/device/cuda_plan.h"
#include "server/device/cuda_rates.h"

namespace warpline {
namespace {

constexpr DeviceTraits kH200 = {.compute_capability = 90, .multiprocessors = 132, .has_cublaslt = true};

DeviceRates H200Rates() {
  Roofline roofline;
  roofline.copy_bytes_per_second = 4261e9;
  roofline.flops_per_second[static_cast<std::size_t>(DType::kF32)] = 51.3e12;
  roofline.flops_per_second[static_cast<std::size_t>(DType::kBF16)] = 784e12;
  return CudaRates(roofline, kH200);
}

double Seconds(const Problem& problem, const std::string& variant, const DeviceRates& rates) {
  Program program;
  program.tensors = {{DType::kF32, {1}, 4}, {DType::kF32, {1}, 4}};
  program.num_inputs = 1;
  program.steps.push_back(
      {.problem = problem, .variant = variant, .inputs = {0}, .output = 1, .scalars = {}});
  program.outputs = {1};
  const CudaKind kind{.traits = kH200};
  const auto compiled = CompileForCuda(program, PlanMemory(program), {&kind, 1}, 1, {});
  return ProgramSeconds(program, rates, [&](const Step& step, std::size_t index) {
    return CostOf(step.problem, compiled->plans[0].steps[index], kH200);
  });
}

TransposeProblem Transpose(DType dtype, std::int64_t n) {
  TransposeProblem problem{.dtype = dtype, .shape = {n, n}};
  problem.perm = {1, 0};
  return problem;
}
GemmProblem Gemm(DType dtype, std::int64_t n) {
  return {.dtype = dtype, .m = n, .n = n, .k = n, .lda = n, .ldb = n, .ldc = n};
}
ReduceProblem Sum(const Shape& shape, std::uint32_t axes_mask) {
  return {.shape = shape, .axes_mask = axes_mask};
}

TEST(CudaCostTest, EstimatesAreWithinAFactorOfThreeOfTheLadder) {
  struct Measured {
    Problem problem;
    const char* variant;
    double microseconds;
  };
  const Shape square{16384, 16384};
  const Measured measured[] = {
      {Transpose(DType::kF32, 8192), "tiles", 133.1},
      {Transpose(DType::kF32, 8192), "naive_read", 1036.6},
      {Transpose(DType::kF64, 8192), "naive_read", 1270.6},
      {Gemm(DType::kF32, 4096), "cublas", 2677.5},
      {Gemm(DType::kF32, 4096), "wide_loads", 3890.4},
      {Gemm(DType::kF32, 4096), "register_tiled", 6747.1},
      {Gemm(DType::kF32, 4096), "unrolled", 29668.8},
      {Gemm(DType::kF32, 4096), "naive", 42300.8},
      {Gemm(DType::kF32, 1024), "naive", 387.9},
      {Gemm(DType::kBF16, 4096), "cublas", 176.1},
      {Gemm(DType::kBF16, 4096), "wgmma", 183.2},
      {Gemm(DType::kBF16, 4096), "mma", 337.9},
      {Gemm(DType::kBF16, 4096), "register_tiled", 10106.1},
      {Gemm(DType::kBF16, 4096), "unrolled", 23807.0},
      {Gemm(DType::kBF16, 4096), "naive", 75849.7},
      {Sum(square, 2), "atomic", 302.8},
      {Sum(square, 1), "cub", 13869.4},
      {Sum(square, 2), "cub", 523.5},
      {Sum(square, 1), "naive", 7024.9},
      {Sum(square, 2), "naive", 2865.2},
      {Sum({1 << 20}, 1), "naive", 112246.9},
      {Sum({1 << 24}, 1), "naive", 2002877.7},
  };
  const DeviceRates rates = H200Rates();
  for (const Measured& m : measured) {
    const double ratio = Seconds(m.problem, m.variant, rates) / (m.microseconds * 1e-6);
    EXPECT_GT(ratio, 1.0 / 3) << Name(OpOf(m.problem)) << " " << m.variant;
    EXPECT_LT(ratio, 3) << Name(OpOf(m.problem)) << " " << m.variant;
  }
}

TEST(CudaCostTest, OneThreadThatAddsUp64MiElementsIsBeyondTheDefaultLimitSoon) {
  // About 8 s each; review of the engine's first form: 62 of them in a request of 64 KiB.
  const double seconds = Seconds(Sum({8192, 8192}, 3), "naive", H200Rates());
  EXPECT_GT(seconds, 2.5);
  EXPECT_LT(seconds, 24);
}

TEST(CudaCostTest, AProductOfOneResultIsNotFree) {
  // One CTA goes through all of k.
  GemmProblem dot{.m = 1, .n = 1, .k = 1 << 25, .lda = 1 << 25, .ldb = 1, .ldc = 1};
  for (const char* variant : {"naive", "unrolled", "register_tiled"}) {
    EXPECT_GT(Seconds(dot, variant, H200Rates()), 0.3) << variant;
    EXPECT_LT(Seconds(dot, variant, H200Rates()), 60) << variant;
  }
}

TEST(CudaCostTest, WithoutARooflineEstimatesAreHigherButOfUse) {
  const DeviceRates guessed = CudaRates({}, kH200);
  const Problem problems[] = {Transpose(DType::kF32, 8192), Gemm(DType::kF32, 4096), Gemm(DType::kBF16, 4096),
                              Sum({8192, 8192}, 3)};
  for (const Problem& problem : problems) {
    EXPECT_GE(Seconds(problem, "", guessed), Seconds(problem, "", H200Rates()));
    EXPECT_LT(Seconds(problem, "", guessed), 1);
  }
}

}  // namespace
}  // namespace warpline
