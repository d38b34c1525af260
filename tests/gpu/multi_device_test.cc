// One scheduler over all the GPUs of a node.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <future>
#include <map>

#include "server/device/cuda_backend.h"
#include "server/schedule/scheduler.h"
#include "tests/gpu/gpu_test.h"

namespace warpline {
namespace {

class MultiDeviceTest : public GpuTest {};

TEST_F(MultiDeviceTest, EveryDeviceComputes) {
  Metrics metrics;
  auto backend = CreateCudaBackend({.lanes = 2, .metrics = &metrics});
  ASSERT_TRUE(backend.ok()) << backend.status();
  const std::size_t devices = (*backend)->devices().size();
  if (devices < 2) GTEST_SKIP() << "this node has one GPU";
  auto memory = *(*backend)->AllocateHost(std::size_t{64} << 20);
  StagingPool pool(memory.bytes(), memory.bytes().size() / 4, metrics);
  WorkerPool workers(2);
  auto scheduler = *Scheduler::Create({.lanes_per_device = 2}, **backend, pool, workers, metrics);
  std::map<int, int> jobs_by_device;
  // On the slots, and as graphs.
  for (const std::int64_t side : {32, 512}) {
    const auto count = static_cast<std::size_t>(side * side);
    std::vector<std::promise<Result>> results(32);
    for (std::size_t i = 0; i < results.size(); ++i) {
      Job job;
      const TransposeProblem problem{DType::kF32, {side, side}, {1, 0}};
      Program program;
      program.tensors = {{DType::kF32, problem.shape, 4 * count}, {DType::kF32, problem.shape, 4 * count}};
      program.num_inputs = 1;
      program.steps.push_back({.problem = problem, .variant = {}, .inputs = {0}, .output = 1, .scalars = {}});
      program.outputs = {1};
      Plan plan = MakePlan(std::move(program));
      plan.compiled = (*backend)->Compile(plan.program, plan.memory)->program;
      job.plan = std::make_shared<const Plan>(std::move(plan));
      job.bindings = MakeBindings(job.plan->memory);
      job.copy_in = [i, count](std::span<std::byte> region, int, int) {
        auto* x = reinterpret_cast<float*>(region.data());
        for (std::size_t k = 0; k < count; ++k) x[k] = static_cast<float>(i * 1000 + k);
      };
      job.done = [&results, i](Result result) { results[i].set_value(std::move(result)); };
      scheduler->Submit(std::move(job));
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
  EXPECT_EQ(jobs_by_device.size(), devices);
}

TEST_F(MultiDeviceTest, IdleDevicesShareALargeTranspose) {
  Metrics metrics;
  auto backend = CreateCudaBackend({.lanes = 2, .metrics = &metrics});
  ASSERT_TRUE(backend.ok()) << backend.status();
  const std::size_t devices = (*backend)->devices().size();
  if (devices < 2) GTEST_SKIP() << "this node has one GPU";
  auto memory = *(*backend)->AllocateHost(std::size_t{1} << 30);
  StagingPool pool(memory.bytes(), memory.bytes().size() / 16, metrics);
  WorkerPool workers(4);
  auto scheduler = *Scheduler::Create({.lanes_per_device = 2}, **backend, pool, workers, metrics);
  constexpr std::int64_t kSide = 4096;
  constexpr auto kCount = static_cast<std::size_t>(kSide * kSide);
  const TransposeProblem problem{DType::kF32, {kSide, kSide}, {1, 0}};
  Program program;
  program.tensors = {{DType::kF32, problem.shape, 4 * kCount}, {DType::kF32, problem.shape, 4 * kCount}};
  program.num_inputs = 1;
  program.steps.push_back({.problem = problem, .variant = {}, .inputs = {0}, .output = 1, .scalars = {}});
  program.outputs = {1};
  Plan plan = MakePlan(std::move(program));
  const CompiledProgram compiled = *(*backend)->Compile(plan.program, plan.memory);
  plan.compiled = compiled.program;
  plan.device_bytes = compiled.device_bytes;
  plan.max_parts = compiled.max_parts;
  ASSERT_GE(plan.max_parts, 2);
  const auto shared = std::make_shared<const Plan>(std::move(plan));
  // First one that is alone, then several at once: later ones find no idle device, and parts of one meet
  // others.
  for (const std::size_t jobs : {std::size_t{1}, std::size_t{3}}) {
    std::vector<std::promise<Result>> results(jobs);
    for (std::promise<Result>& promise : results) {
      Job job;
      job.plan = shared;
      job.bindings = MakeBindings(job.plan->memory);
      job.copy_in = [](std::span<std::byte> region, int part, int parts) {
        auto* x = reinterpret_cast<float*>(region.data());
        const auto of = static_cast<std::size_t>(parts), number = static_cast<std::size_t>(part);
        for (std::size_t k = kCount * number / of; k < kCount * (number + 1) / of; ++k) {
          x[k] = static_cast<float>(k);
        }
      };
      job.done = [&promise](Result result) { promise.set_value(std::move(result)); };
      scheduler->Submit(std::move(job));
    }
    double busy = 0;  // lanes, of all devices at a time
    for (std::promise<Result>& promise : results) {
      std::future<Result> future = promise.get_future();
      while (future.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
        double now = 0;
        for (std::size_t i = 0; i < devices; ++i) now += metrics.LaneBusy(static_cast<int>(i)).Value();
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
