// Tests what tuning asks of a device, on a real device.
#include "server/tuning/workbench.h"

#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/problem_text.h"
#include "server/device/attempts.h"
#include "server/device/cuda_device.h"
#include "server/device/cuda_rates.h"
#include "server/device/cuda_workbench.h"
#include "tests/gpu/gpu_test.h"

namespace warpline {
namespace {

using testing::Contains;
using testing::Not;

constexpr char kProduct[] = "gemm f32 200x300x400";

class WorkbenchTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    cudaDeviceProp properties;
    ASSERT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
    // The rules choose cuBLASLt, which refuses everything at its launch.
    device_.context.traits = {.compute_capability = properties.major * 10 + properties.minor,
                              .multiprocessors = properties.multiProcessorCount,
                              .has_cublaslt = true};
    device_.context.cublaslt = nullptr;
    device_.completion = std::make_unique<Completion>(0, [](const absl::Status&) {});
  }
  std::unique_ptr<Workbench> Open(FailedVariants failed) {
    auto workbench =
        CreateCudaWorkbench(device_, CudaRates({}, device_.context.traits), std::move(failed), attempts_);
    EXPECT_TRUE(workbench.ok()) << workbench.status();
    return *std::move(workbench);
  }

  Attempts attempts_;
  CudaDevice device_;
};

TEST_F(WorkbenchTest, WhereTheFirstRowRefusesTheNextOneIsTimedInItsPlace) {
  const auto workbench = Open({});
  const auto trial = workbench->Prepare(*ParseProblem(kProduct));
  ASSERT_TRUE(trial.ok()) << trial.status();
  const auto candidates = (*trial)->candidates();
  ASSERT_EQ(candidates[0], "cublas");
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const bool refuses = i > 0 && candidates[i].substr(0, 6) == "cublas";
    const auto seconds = (*trial)->Time(i);
    EXPECT_EQ(absl::IsUnimplemented(seconds.status()), refuses) << candidates[i];
    EXPECT_EQ(seconds.ok() && seconds->has_value(), !refuses) << candidates[i];
  }
}

TEST_F(WorkbenchTest, WhatHasFailedIsNoCandidate) {
  const Problem problem = *ParseProblem(kProduct);
  const auto workbench = Open({{kProduct, {"cublas:2"}}});
  const auto trial = workbench->Prepare(problem);
  ASSERT_TRUE(trial.ok()) << trial.status();
  const auto candidates = (*trial)->candidates();
  EXPECT_THAT(std::vector<std::string_view>(candidates.begin(), candidates.end()), Not(Contains("cublas:2")));
  const auto without_first = Open({{kProduct, {"cublas"}}});
  EXPECT_TRUE(absl::IsFailedPrecondition(without_first->Prepare(problem).status()));
}

}  // namespace
}  // namespace warpline
