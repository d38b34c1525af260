// The engine of one GPU without gRPC, and jobs for it, for benchmarks.
#ifndef WARPLINE_TESTS_BENCH_ENGINE_H_
#define WARPLINE_TESTS_BENCH_ENGINE_H_

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "absl/synchronization/blocking_counter.h"
#include "absl/time/clock.h"
#include "server/device/cuda_backend.h"
#include "server/schedule/scheduler.h"

namespace warpline::bench {

[[noreturn]] inline void Fail(const absl::Status& status) {
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  std::exit(1);  // a figure of jobs that failed would be a lie
}

struct EngineSize {
  int lanes = 8;
  std::size_t device_bytes = std::size_t{1} << 30;  // of lanes and pool
  std::size_t staging_bytes = std::size_t{32} << 20;
};

// Device 0, and staging memory full of random words. Ends the program where there is no GPU.
class Engine {
 public:
  explicit Engine(CudaBackendOptions options, const EngineSize& size = {}) {
    options.devices = {0};
    options.lanes = size.lanes;
    options.device_bytes = size.device_bytes;
    options.metrics = &metrics_;
    auto backend = CreateCudaBackend(options);
    if (!backend.ok()) {
      std::printf("skipped: %s\n", std::string(backend.status().message()).c_str());
      std::exit(0);
    }
    backend_ = std::move(*backend);
    auto memory = backend_->AllocateHost(size.staging_bytes);
    if (!memory.ok()) Fail(memory.status());
    memory_ = std::move(*memory);
    std::mt19937 random(1);
    auto* words = reinterpret_cast<std::uint32_t*>(memory_.bytes().data());
    for (std::size_t i = 0; i < memory_.bytes().size() / 4; ++i) words[i] = random() & 0x3fffffff;
    pool_ = std::make_unique<StagingPool>(memory_.bytes(), size.staging_bytes / 8, metrics_);
    auto scheduler =
        Scheduler::Create({.lanes_per_device = size.lanes}, *backend_, *pool_, workers_, metrics_);
    if (!scheduler.ok()) Fail(scheduler.status());
    scheduler_ = std::move(*scheduler);
  }

  PlanPtr PlanFor(const Program& program) const {
    Plan plan = MakePlan(program);
    plan.device_bytes = backend_->DeviceBytes(plan.program, plan.memory);
    return std::make_shared<const Plan>(std::move(plan));
  }

  // All metrics, as Prometheus would read them.
  std::string Scrape() const { return metrics_.Scrape(); }

  // Runs the program on what lies in its slot. `crowded`: see Job.
  void Submit(const PlanPtr& plan, std::function<void()> done, bool crowded = false) {
    Job job;
    job.crowded = crowded;
    job.plan = plan;
    job.bindings = MakeBindings(plan->memory);
    job.copy_in = [](std::span<std::byte>, int, int) {};
    job.done = [done = std::move(done)](const Result& result) {
      if (!result.status.ok()) Fail(result.status);
      done();
    };
    scheduler_->Submit(std::move(job));
  }

  // Jobs a second, so many at a time.
  double Throughput(const Program& program, int rounds, int at_a_time = 32) {
    const PlanPtr plan = PlanFor(program);
    const absl::Time start = absl::Now();
    for (int round = 0; round < rounds; ++round) {
      absl::BlockingCounter done(at_a_time);
      for (int i = 0; i < at_a_time; ++i)
        Submit(
            plan, [&] { done.DecrementCount(); }, at_a_time > 1);
      done.Wait();
    }
    return rounds * at_a_time / absl::ToDoubleSeconds(absl::Now() - start);
  }

 private:
  Metrics metrics_;
  std::unique_ptr<Backend> backend_;
  Buffer memory_;
  std::unique_ptr<StagingPool> pool_;
  WorkerPool workers_{4};
  std::unique_ptr<Scheduler> scheduler_;
};

// A program of one step on f32.
inline Program OneStep(Problem problem, const Shape& in, const Shape& out) {
  const auto bytes = [](const Shape& shape) { return static_cast<std::size_t>(shape.Count()) * 4; };
  Program program;
  program.tensors = {{DType::kF32, in, bytes(in)}, {DType::kF32, out, bytes(out)}};
  program.num_inputs = 1;
  program.steps.push_back(
      {.problem = std::move(problem), .variant = {}, .inputs = {0}, .output = 1, .scalars = {}});
  program.outputs = {1};
  return program;
}

}  // namespace warpline::bench

#endif  // WARPLINE_TESTS_BENCH_ENGINE_H_
