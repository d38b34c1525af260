// Overlap without gRPC: 64 jobs of 64 MiB f32 transposes through the scheduler, over 1, 2 and 4 lanes.
//
// Payloads lie in staging memory already (random data), so what is measured is the device: H2D, kernel and
// D2H of each job, and how much of them runs at once. Prints one row a lane count and round, then medians.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <vector>

#include "absl/synchronization/blocking_counter.h"
#include "server/base/mutex.h"
#include "server/device/cuda_backend.h"
#include "server/schedule/scheduler.h"

namespace warpline {
namespace {

constexpr int kJobs = 64;
constexpr std::int64_t kSide = 4096;
constexpr std::size_t kBytes = std::size_t{kSide} * kSide * 4;

Job TransposeJob(const Backend& backend, absl::BlockingCounter& done) {
  TransposeProblem problem{DType::kF32, {kSide, kSide}, {1, 0}};
  Program program;
  program.tensors = {{DType::kF32, problem.shape, kBytes}, {DType::kF32, problem.shape, kBytes}};
  program.num_inputs = 1;
  program.steps.push_back({.problem = problem, .variant = {}, .inputs = {0}, .output = 1, .scalars = {}});
  program.outputs = {1};
  Job job;
  Plan plan = MakePlan(std::move(program));
  plan.device_bytes = backend.DeviceBytes(plan.program, plan.memory);
  job.plan = std::make_shared<const Plan>(std::move(plan));
  job.bindings = MakeBindings(job.plan->memory);
  job.copy_in = [](std::span<std::byte>, int, int) {};
  job.done = [&done](const Result& result) {
    if (!result.status.ok()) {  // a figure of jobs that failed would be a lie
      std::fprintf(stderr, "job failed: %s\n", std::string(result.status.message()).c_str());
      std::exit(1);
    }
    done.DecrementCount();
  };
  return job;
}

// Seconds in which some copy in and some copy out ran at once. A job's own copies never do, so these are of
// different jobs. Sweeps over all begins and ends in the order of time.
double OverlapSeconds(const std::vector<JobTimeline>& jobs) {
  struct Change {
    double at;
    int in, out;  // copies that begin (1) or end (-1)
  };
  std::vector<Change> changes;
  for (const JobTimeline& job : jobs) {
    changes.push_back({job.h2d_begin, 1, 0});
    changes.push_back({job.h2d_end, -1, 0});
    changes.push_back({job.d2h_begin, 0, 1});
    changes.push_back({job.d2h_end, 0, -1});
  }
  std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) { return a.at < b.at; });
  double overlap = 0, since = 0;
  int in = 0, out = 0;
  for (const Change& change : changes) {
    if (in > 0 && out > 0) overlap += change.at - since;
    since = change.at;
    in += change.in;
    out += change.out;
  }
  return overlap;
}

int Main() {
  std::map<int, std::vector<double>> seconds;
  std::printf("lanes  time_ms  GB/s both directions  H2D of one job beside D2H of another, ms\n");
  for (int round = 0; round < 5; ++round) {
    for (int lanes : {1, 2, 4}) {
      Metrics metrics;
      Mutex mutex;
      std::vector<JobTimeline> timelines;
      auto backend = CreateCudaBackend({.devices = {0},
                                        .lanes = lanes,
                                        .device_bytes = 4 * (2 * kBytes + (std::size_t{64} << 20)),
                                        // A job that is cut overlaps with itself: large_bench has that.
                                        .paths = {.cut_bytes = std::size_t{1} << 50},
                                        .timing_sample = 1,
                                        .on_timeline =
                                            [&](const JobTimeline& timeline) {
                                              MutexLock lock(&mutex);
                                              timelines.push_back(timeline);
                                            },
                                        .metrics = &metrics});
      if (!backend.ok()) {
        std::printf("skipped: %s\n", std::string(backend.status().message()).c_str());
        return 0;
      }
      auto memory = (*backend)->AllocateHost(std::size_t{1} << 30);
      if (!memory.ok()) return 1;
      std::mt19937 random(static_cast<unsigned>(round));
      auto* words = reinterpret_cast<std::uint32_t*>(memory->bytes().data());
      for (std::size_t i = 0; i < memory->bytes().size() / 4; ++i) words[i] = random() & 0x3fffffff;
      StagingPool pool(memory->bytes(), 0, metrics);
      WorkerPool workers(4);
      auto scheduler = Scheduler::Create({.lanes_per_device = lanes}, **backend, pool, workers, metrics);
      if (!scheduler.ok()) return 1;
      const auto run = [&](int jobs) {
        absl::BlockingCounter done(jobs);
        const absl::Time start = absl::Now();
        for (int i = 0; i < jobs; ++i) (*scheduler)->Submit(TransposeJob(**backend, done));
        done.Wait();
        return absl::ToDoubleSeconds(absl::Now() - start);
      };
      run(2 * lanes);  // lets every lane meet the program
      {
        MutexLock lock(&mutex);
        timelines.clear();
      }
      const double elapsed = run(kJobs);
      seconds[lanes].push_back(elapsed);
      MutexLock lock(&mutex);
      std::printf("%5d  %7.2f  %20.1f  %.2f\n", lanes, elapsed * 1e3, 2.0 * kJobs * kBytes / elapsed / 1e9,
                  OverlapSeconds(timelines) * 1e3);
    }
  }
  for (auto& [lanes, all] : seconds) std::nth_element(all.begin(), all.begin() + all.size() / 2, all.end());
  const auto median = [&](int lanes) { return seconds[lanes][seconds[lanes].size() / 2]; };
  std::printf("medians: 1 lane %.2f ms, 2 lanes %.2f ms, 4 lanes %.2f ms; 4 lanes / 1 lane = %.3f; ",
              median(1) * 1e3, median(2) * 1e3, median(4) * 1e3, median(4) / median(1));
  std::printf("both directions together at 4 lanes %.1f GB/s\n", 2.0 * kJobs * kBytes / median(4) / 1e9);
  return 0;
}

}  // namespace
}  // namespace warpline

int main() { return warpline::Main(); }
