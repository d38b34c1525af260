// A lane of either backend without a scheduler, on which benchmarks time programs.
#ifndef WARPLINE_TESTS_BENCH_TIMED_LANE_H_
#define WARPLINE_TESTS_BENCH_TIMED_LANE_H_

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "kernels/operand_sizes.h"
#include "server/device/cpu_backend.h"
#ifdef WARPLINE_HAVE_CUDA
#include "server/device/cuda_backend.h"
#endif

namespace warpline::bench {

[[noreturn]] inline void Fail(const absl::Status& status) {
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  std::exit(1);
}

// Returns the time in seconds. With `thread` it is the time of the thread, where lanes run on it: other
// processes then do not count.
inline double Now(bool thread) {
  timespec now{};
  clock_gettime(thread ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

class TimedLane {
 public:
  explicit TimedLane(std::unique_ptr<Backend> backend) : backend_(std::move(backend)) {
    auto lane = backend_->CreateLane(0);
    if (!lane.ok()) Fail(lane.status());
    lane_ = std::move(*lane);
    auto memory = backend_->AllocateHost(2 * kRegionBytes);
    if (!memory.ok()) Fail(memory.status());
    memory_ = std::move(*memory);
    std::memset(memory_.bytes().data(), 0x3c, 2 * kRegionBytes);
  }

  Backend& backend() { return *backend_; }
  // The backend's estimate. Unit: seconds.
  double Estimate(const Program& program) {
    const absl::StatusOr<CompiledProgram> compiled = backend_->Compile(program, PlanMemory(program));
    if (!compiled.ok()) Fail(compiled.status());
    return compiled->seconds;
  }
  // The input area of the next program.
  std::span<std::byte> input() const { return memory_.bytes().first(kRegionBytes); }

  // Shortest of a few runs.
  double Seconds(const Program& program) {
    const MemoryPlan plan = PlanMemory(program);
    const absl::StatusOr<CompiledProgram> compiled = backend_->Compile(program, plan);
    if (!compiled.ok()) Fail(compiled.status());
    const Bindings bindings = MakeBindings(plan);
    for (std::size_t i = 0; i < program.steps.size(); ++i) {
      std::vector<StepScalars> scalars = program.steps[i].scalars;
      scalars.resize(static_cast<std::size_t>(ScalarCount(program.steps[i].problem)));
      if (scalars.empty()) continue;
      std::memcpy(memory_.bytes().data() + plan.scalars[i], scalars.data(),
                  scalars.size() * sizeof(StepScalars));
    }
    double shortest = 1e9, total = 0;
    for (int round = 0; round < 3 && total < 1; ++round) {
      absl::Notification ended;
      LaunchReport report;
      const bool thread = !backend_->launches_asynchronously();
      const double start = Now(thread);
      lane_->Launch({.program = &program,
                     .plan = &plan,
                     .compiled = compiled->program.get(),
                     .bindings = bindings,
                     .input = memory_.bytes().first(plan.input_bytes),
                     .output = memory_.bytes().subspan(kRegionBytes, plan.output_bytes)},
                    [&](LaunchReport done) {
                      report = std::move(done);
                      ended.Notify();
                    });
      ended.WaitForNotification();
      if (!report.status.ok()) Fail(report.status);
      const double elapsed = Now(thread) - start;
      shortest = std::min(shortest, elapsed);
      total += elapsed;
    }
    return shortest;
  }

 private:
  static constexpr std::size_t kRegionBytes = std::size_t{64} << 20;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Lane> lane_;
  Buffer memory_;
};

inline absl::StatusOr<std::unique_ptr<Backend>> MakeBackend(bool cuda) {
  constexpr std::size_t kLaneBytes = std::size_t{3} << 30;
#ifdef WARPLINE_HAVE_CUDA
  if (cuda) return CreateCudaBackend({.devices = {"0"}, .lane_bytes = kLaneBytes, .measure_roofline = true});
#endif
  if (cuda) return absl::UnavailableError("built without CUDA");
  return CreateCpuBackend({.lane_bytes = kLaneBytes});
}

}  // namespace warpline::bench

#endif  // WARPLINE_TESTS_BENCH_TIMED_LANE_H_
