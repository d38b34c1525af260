// Copies or slots: at which size is a program better off with copies around its kernels than with kernels
// that read and write the staging slots over PCIe? Through the scheduler, without gRPC, one job after the
// other and 32 at a time over 8 lanes. Prints one row a problem and size.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "server/engine/cuda_backend.h"
#include "server/engine/scheduler.h"

namespace warpline {
namespace {

Program OneStep(Problem problem, const Shape& in, const Shape& out) {
  const auto bytes = [](const Shape& shape) { return static_cast<std::size_t>(shape.Count()) * 4; };
  Program program;
  program.tensors = {{DType::kF32, in, bytes(in)}, {DType::kF32, out, bytes(out)}};
  program.num_inputs = 1;
  program.steps.push_back(
      {.problem = std::move(problem), .variant = {}, .inputs = {0}, .output = 1, .scalars = {}});
  program.outputs = {1};
  return program;
}

Job MakeJob(const Program& program, std::function<void()> done) {
  Job job;
  job.program = program;
  job.plan = PlanMemory(job.program);
  job.signature = Signature(job.program);
  job.fill_inputs = [](std::span<std::byte>) {};  // random bytes lie there already
  job.done = [done = std::move(done)](const Result& result) {
    if (!result.status.ok()) {
      std::fprintf(stderr, "job failed: %s\n", std::string(result.status.message()).c_str());
      std::exit(1);
    }
    done();
  };
  return job;
}

struct Figures {
  double alone_us = 0;    // median of one job after the other
  double per_second = 0;  // 32 at a time
};

Figures Measure(Scheduler& scheduler, const Program& program) {
  std::vector<double> seconds;
  for (int i = 0; i < 600; ++i) {
    absl::Notification done;
    const absl::Time start = absl::Now();
    scheduler.Submit(MakeJob(program, [&] { done.Notify(); }));
    while (!done.HasBeenNotified()) {
    }
    if (i >= 100) seconds.push_back(absl::ToDoubleSeconds(absl::Now() - start));
  }
  std::nth_element(seconds.begin(), seconds.begin() + seconds.size() / 2, seconds.end());
  Figures figures;
  figures.alone_us = seconds[seconds.size() / 2] * 1e6;
  constexpr int kRounds = 100, kAtATime = 32;
  const absl::Time start = absl::Now();
  for (int round = 0; round < kRounds; ++round) {
    absl::BlockingCounter done(kAtATime);
    for (int i = 0; i < kAtATime; ++i) scheduler.Submit(MakeJob(program, [&] { done.DecrementCount(); }));
    done.Wait();
  }
  figures.per_second = kRounds * kAtATime / absl::ToDoubleSeconds(absl::Now() - start);
  return figures;
}

int Main() {
  std::vector<std::pair<std::string, Program>> cases;
  for (std::int64_t side : {32, 64, 90, 128, 181, 256, 512}) {
    const Shape square = {side, side};
    const std::string size = std::to_string(side) + "x" + std::to_string(side);
    cases.emplace_back("transpose " + size,
                       OneStep(TransposeProblem{DType::kF32, square, {1, 0}}, square, square));
    for (unsigned axis : {0u, 1u}) {
      ReduceProblem sum{.op = ReduceOp::kSum, .dtype = DType::kF32, .shape = square, .axes_mask = 1u << axis};
      cases.emplace_back("sum axis " + std::to_string(axis) + " " + size, OneStep(sum, square, {side}));
    }
  }
  std::vector<std::vector<Figures>> figures(cases.size());
  for (const std::size_t on_slots_bytes : {std::size_t{0}, std::size_t{1} << 30}) {
    Metrics metrics;
    auto backend = CreateCudaBackend({.devices = {0},
                                      .lane_bytes = std::size_t{128} << 20,
                                      .on_slots_bytes = on_slots_bytes,
                                      .timing_sample = 0,
                                      .metrics = &metrics});
    if (!backend.ok()) {
      std::printf("skipped: %s\n", std::string(backend.status().message()).c_str());
      return 0;
    }
    auto memory = (*backend)->AllocateHost(std::size_t{1} << 28);
    if (!memory.ok()) return 1;
    std::mt19937 random(1);
    auto* words = reinterpret_cast<std::uint32_t*>((*memory)->bytes().data());
    for (std::size_t i = 0; i < (*memory)->bytes().size() / 4; ++i) words[i] = random() & 0x3fffffff;
    StagingPool pool((*memory)->bytes(), metrics);
    auto scheduler = Scheduler::Create({.lanes_per_device = 8}, **backend, pool, metrics);
    if (!scheduler.ok()) return 1;
    for (std::size_t i = 0; i < cases.size(); ++i) {
      figures[i].push_back(Measure(**scheduler, cases[i].second));
    }
  }
  std::printf("problem (f32)              copies us  slots us  copies jobs/s  slots jobs/s\n");
  for (std::size_t i = 0; i < cases.size(); ++i) {
    std::printf("%-26s %9.1f %9.1f %14.0f %13.0f\n", cases[i].first.c_str(), figures[i][0].alone_us,
                figures[i][1].alone_us, figures[i][0].per_second, figures[i][1].per_second);
  }
  return 0;
}

}  // namespace
}  // namespace warpline

int main() { return warpline::Main(); }
