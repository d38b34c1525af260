// Runs programs on a lane of device 0, for tests that compare what comes out.
#ifndef WARPLINE_TESTS_GPU_LANE_RUNS_H_
#define WARPLINE_TESTS_GPU_LANE_RUNS_H_

#include <gtest/gtest.h>

#include <cstring>
#include <future>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "server/device/cuda_backend.h"
#include "server/observe/metrics.h"

namespace warpline {

// A backend with so many lanes and 128 MiB of slots.
class LaneRuns {
 public:
  explicit LaneRuns(CudaBackendOptions options, int lanes = 1) {
    options.devices = {"0"};
    options.metrics = &metrics_;
    options.on_timeline = [this](const JobTimeline&) { ++whole_; };
    auto backend = CreateCudaBackend(options);
    if (!backend.ok()) {
      ADD_FAILURE() << backend.status();
      return;
    }
    backend_ = std::move(*backend);
    for (int i = 0; i < lanes; ++i) lanes_.push_back(*backend_->CreateLane(0));
    memory_ = *backend_->AllocateHost(std::size_t{128} << 20);
  }

  // A job on its way: its slots, and its end.
  struct Job {
    Program program;
    MemoryPlan plan;
    std::shared_ptr<const DeviceProgram> compiled;
    Bindings bindings;
    std::span<std::byte> input, output;
    std::promise<LaunchReport> report;
  };

  // With random bytes as input and slots that begin `at` bytes into the memory; the output is poisoned.
  std::unique_ptr<Job> Launch(Program program, std::size_t at = 0, int lane = 0) {
    return LaunchCompiled(program, backend_->Compile(program, PlanMemory(program))->program, at, lane);
  }
  // The same, compiled by a backend of the same device.
  std::unique_ptr<Job> LaunchCompiled(Program program, std::shared_ptr<const DeviceProgram> compiled,
                                      std::size_t at = 0, int lane = 0) {
    auto job = std::make_unique<Job>();
    job->program = std::move(program);
    job->plan = PlanMemory(job->program);
    job->compiled = std::move(compiled);
    job->bindings = MakeBindings(job->plan);
    job->input = memory_.bytes().subspan(at, job->plan.input_bytes);
    job->output = memory_.bytes().subspan(at + ((job->plan.input_bytes + 255) & ~std::size_t{255}),
                                          job->plan.output_bytes);
    // The bytes suit every type: as floats they are finite, not zero and not all alike.
    auto* bytes = reinterpret_cast<unsigned char*>(job->input.data());
    for (std::size_t i = 0; i < job->input.size(); ++i)
      bytes[i] = static_cast<unsigned char>(random_() % 0x39 + 1);
    for (std::size_t i = 0; i < job->program.steps.size(); ++i) {
      std::vector<StepScalars> scalars = job->program.steps[i].scalars;
      scalars.resize(static_cast<std::size_t>(ScalarCount(job->program.steps[i].problem)));
      if (scalars.empty()) continue;
      std::memcpy(bytes + job->plan.scalars[i], scalars.data(), scalars.size() * sizeof(StepScalars));
    }
    std::memset(job->output.data(), 0xcd, job->output.size());
    lanes_[static_cast<std::size_t>(lane)]->Launch(
        {&job->program, &job->plan, job->compiled.get(), job->bindings, job->input, job->output},
        [raw = job.get()](LaunchReport report) { raw->report.set_value(std::move(report)); });
    return job;
  }

  // The output of one program after another: of the last of so many launches, with the same input.
  std::vector<std::byte> Output(const Program& program, std::uint32_t seed, int launches = 1) {
    const auto compiled = backend_->Compile(program, PlanMemory(program))->program;
    std::unique_ptr<Job> job;
    for (int i = 0; i < launches; ++i) {
      random_.seed(seed);
      job = LaunchCompiled(program, compiled);
      const LaunchReport report = job->report.get_future().get();
      EXPECT_TRUE(report.status.ok()) << report.status;
    }
    return {job->output.begin(), job->output.end()};
  }

  Metrics& metrics() { return metrics_; }
  Backend& backend() { return *backend_; }
  // Sampled jobs that were copied whole: as graphs, or in memory of the pool.
  int whole() const { return whole_; }

 private:
  Metrics metrics_;
  std::atomic<int> whole_ = 0;
  std::unique_ptr<Backend> backend_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  Buffer memory_;
  std::mt19937 random_{1};
};

// A program of one step; `out` is the shape and type of its result.
inline Program OneStepProgram(Problem problem, std::vector<TensorSpec> inputs, TensorSpec output) {
  Program program;
  program.num_inputs = static_cast<int>(inputs.size());
  program.tensors = std::move(inputs);
  program.tensors.push_back(std::move(output));
  Step step{.problem = std::move(problem),
            .variant = {},
            .inputs = {},
            .output = program.num_inputs,
            .scalars = {}};
  for (int i = 0; i < program.num_inputs; ++i) step.inputs.push_back(i);
  program.steps.push_back(std::move(step));
  program.outputs = {program.num_inputs};
  return program;
}

inline Program TransposeProgram(const TransposeProblem& problem) {
  const Shape& shape = problem.shape;
  const std::int64_t row = shape[shape.rank - 1];
  const std::int64_t stride = problem.row_stride != 0 ? problem.row_stride : row;
  const std::size_t element = SizeOf(problem.dtype);
  return OneStepProgram(
      problem,
      {{problem.dtype, shape,
        row == 0 ? 0 : static_cast<std::size_t>(shape.Count() / row * stride) * element}},
      {problem.dtype, problem.OutputShape(), static_cast<std::size_t>(shape.Count()) * element});
}

}  // namespace warpline

#endif  // WARPLINE_TESTS_GPU_LANE_RUNS_H_
