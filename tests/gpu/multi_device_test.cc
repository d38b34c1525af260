// One scheduler over all the GPUs of a node.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <future>
#include <map>
#include <memory>
#include <optional>

#include "server/device/cuda_backend.h"
#include "server/schedule/scheduler.h"
#include "tests/gpu/gpu_test.h"

namespace warpline {
namespace {

class MultiDeviceTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    auto backend = CreateCudaBackend({.lanes = 2, .metrics = &metrics_});
    ASSERT_TRUE(backend.ok()) << backend.status();
    backend_ = *std::move(backend);
    devices_ = backend_->devices().size();
    if (devices_ < 2) GTEST_SKIP() << "this node has one GPU";
    memory_ = *backend_->AllocateHost(std::size_t{1} << 30);
    pool_.emplace(memory_.bytes(), memory_.bytes().size() / 16, metrics_);
    scheduler_ = *Scheduler::Create({.lanes_per_device = 2}, *backend_, *pool_, workers_, metrics_);
  }

  // A transpose of f32.
  std::shared_ptr<const Plan> Transpose(std::int64_t side) const {
    const TransposeProblem problem{DType::kF32, {side, side}, {1, 0}};
    const auto bytes = static_cast<std::size_t>(side * side) * sizeof(float);
    Program program;
    program.tensors = {{DType::kF32, problem.shape, bytes}, {DType::kF32, problem.shape, bytes}};
    program.num_inputs = 1;
    program.steps.push_back({.problem = problem, .variant = {}, .inputs = {0}, .output = 1, .scalars = {}});
    program.outputs = {1};
    Plan plan = MakePlan(std::move(program));
    const CompiledProgram compiled = *backend_->Compile(plan.program, plan.memory);
    plan.compiled = compiled.program;
    plan.device_bytes = compiled.device_bytes;
    plan.max_parts = compiled.max_parts;
    return std::make_shared<const Plan>(std::move(plan));
  }

  Metrics metrics_;
  std::unique_ptr<Backend> backend_;
  std::size_t devices_ = 0;
  Buffer memory_;
  std::optional<StagingPool> pool_;
  WorkerPool workers_{4};
  std::unique_ptr<Scheduler> scheduler_;
};

TEST_F(MultiDeviceTest, EveryDeviceComputes) {
  std::map<int, int> jobs_by_device;
  // On the slots, and as graphs.
  for (const std::int64_t side : {32, 512}) {
    const auto count = static_cast<std::size_t>(side * side);
    std::vector<std::promise<Result>> results(32);
    for (std::size_t i = 0; i < results.size(); ++i) {
      Job job;
      job.plan = Transpose(side);
      job.bindings = MakeBindings(job.plan->memory);
      job.copy_in = [i, count](std::span<std::byte> region, int, int) {
        auto* x = reinterpret_cast<float*>(region.data());
        for (std::size_t k = 0; k < count; ++k) x[k] = static_cast<float>(i * 1000 + k);
      };
      job.done = [&results, i](Result result) { results[i].set_value(std::move(result)); };
      scheduler_->Submit(std::move(job));
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      const Result result = results[i].get_future().get();
      ASSERT_TRUE(result.status.ok()) << result.status;
      ++jobs_by_device[result.device];
      const auto* y = reinterpret_cast<const float*>(result.output.bytes().data());
      for (std::size_t r = 0; r < static_cast<std::size_t>(side); ++r) {
        for (std::size_t c = 0; c < static_cast<std::size_t>(side); ++c) {
          ASSERT_EQ(y[c * static_cast<std::size_t>(side) + r],
                    static_cast<float>(i * 1000 + r * static_cast<std::size_t>(side) + c));
        }
      }
    }
  }
  EXPECT_EQ(jobs_by_device.size(), devices_);
}

TEST_F(MultiDeviceTest, IdleDevicesShareALargeTranspose) {
  constexpr std::int64_t kSide = 4096;
  constexpr auto kCount = static_cast<std::size_t>(kSide * kSide);
  const std::shared_ptr<const Plan> plan = Transpose(kSide);
  ASSERT_GE(plan->max_parts, 2);
  // First one that is alone, then several at once: later ones find no idle device, and parts of one meet
  // others.
  for (const std::size_t jobs : {std::size_t{1}, std::size_t{3}}) {
    std::vector<std::promise<Result>> results(jobs);
    for (std::promise<Result>& promise : results) {
      Job job;
      job.plan = plan;
      job.bindings = MakeBindings(job.plan->memory);
      job.copy_in = [](std::span<std::byte> region, int part, int parts) {
        auto* x = reinterpret_cast<float*>(region.data());
        const auto of = static_cast<std::size_t>(parts), number = static_cast<std::size_t>(part);
        for (std::size_t k = kCount * number / of; k < kCount * (number + 1) / of; ++k) {
          x[k] = static_cast<float>(k);
        }
      };
      job.done = [&promise](Result result) { promise.set_value(std::move(result)); };
      scheduler_->Submit(std::move(job));
    }
    double busy = 0;  // lanes, of all devices at a time
    for (std::promise<Result>& promise : results) {
      std::future<Result> future = promise.get_future();
      while (future.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
        double now = 0;
        for (std::size_t i = 0; i < devices_; ++i) now += metrics_.LaneBusy(static_cast<int>(i)).Value();
        busy = std::max(busy, now);
      }
      const Result result = future.get();
      ASSERT_TRUE(result.status.ok()) << result.status;
      const auto* y = reinterpret_cast<const float*>(result.output.bytes().data());
      std::size_t wrong = 0;
      for (std::size_t r = 0; r < static_cast<std::size_t>(kSide); ++r) {
        for (std::size_t c = 0; c < static_cast<std::size_t>(kSide); ++c) {
          wrong += y[c * static_cast<std::size_t>(kSide) + r] !=
                   static_cast<float>(r * static_cast<std::size_t>(kSide) + c);
        }
      }
      EXPECT_EQ(wrong, 0u);
      // The next result must not find here what it does not write.
      std::memset(result.output.bytes().data(), 0xff, result.output.bytes().size());
    }
    if (jobs == 1) {
      EXPECT_GE(busy, 2) << "one device had it all";
    }
  }
}

}  // namespace
}  // namespace warpline
