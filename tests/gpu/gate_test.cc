#include "kernels/gpu/gate.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>

#include "kernels/gpu/empty_kernel.h"
#include "kernels/gpu/handle.h"
#include "tests/gpu/gpu_test.h"

namespace warpline::gpu {
namespace {

class GateTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    auto stream = CreateStream();
    auto begin = CreateTimedEvent(), end = CreateTimedEvent();
    auto gate = Gate::Create();
    ASSERT_TRUE(stream.ok() && begin.ok() && end.ok() && gate.ok());
    stream_ = *std::move(stream);
    begin_ = *std::move(begin);
    end_ = *std::move(end);
    gate_.emplace(*std::move(gate));
  }

  // Returns the microseconds between two events around a kernel that the host launches late.
  double TimeOfALateLaunch(std::chrono::microseconds delay) {
    EXPECT_EQ(cudaEventRecord(begin_.get(), stream_.get()), cudaSuccess);
    const auto until = std::chrono::steady_clock::now() + delay;
    while (std::chrono::steady_clock::now() < until) {
    }
    EXPECT_EQ(LaunchEmptyKernel(1, stream_.get()), cudaSuccess);
    EXPECT_EQ(cudaEventRecord(end_.get(), stream_.get()), cudaSuccess);
    gate_->Open();
    EXPECT_EQ(cudaStreamSynchronize(stream_.get()), cudaSuccess);
    float milliseconds = 0;
    EXPECT_EQ(cudaEventElapsedTime(&milliseconds, begin_.get(), end_.get()), cudaSuccess);
    return milliseconds * 1e3;
  }

  Stream stream_;
  Event begin_, end_;
  std::optional<Gate> gate_;
};

TEST_F(GateTest, KeepsTimeOfTheHostOutOfTheTimesOfKernels) {
  constexpr std::chrono::microseconds kDelay(100);
  EXPECT_GE(TimeOfALateLaunch(kDelay), 100) << "without a gate the delay is in it";
  // The host may be stopped for longer than a gate waits; then the gate says so.
  bool held = false;
  for (int round = 0; round < 100 && !held; ++round) {
    ASSERT_TRUE(gate_->Enqueue(stream_.get()).ok());
    const double elapsed = TimeOfALateLaunch(kDelay);
    held = gate_->Held();
    EXPECT_TRUE(!held || elapsed < 100) << elapsed;
  }
  EXPECT_TRUE(held);
}

TEST_F(GateTest, OpensByItselfAndSaysSo) {
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(gate_->Enqueue(stream_.get()).ok());
    ASSERT_EQ(cudaStreamSynchronize(stream_.get()), cudaSuccess) << "nobody opens it";
    EXPECT_FALSE(gate_->Held());
    gate_->Open();
  }
}

}  // namespace
}  // namespace warpline::gpu
