#include "kernels/bench/harness/timing.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <random>

#include "kernels/bench/harness/check.h"
#include "kernels/gpu/capture.h"
#include "kernels/gpu/handle.h"

namespace warpline::bench {
namespace {

constexpr double kSecondsPerTiming = 2e-3;
constexpr double kSlow = 20e-3;  // seconds of a timing
constexpr int kMaxLaunches = 256;

class EventTimer {
 public:
  explicit EventTimer(cudaStream_t stream)
      : stream_(stream), begin_(Value(gpu::CreateTimedEvent())), end_(Value(gpu::CreateTimedEvent())) {}

  template <typename Enqueue>
  double Seconds(const Enqueue& enqueue) {
    Check(cudaEventRecord(begin_.get(), stream_), "recording an event");
    Check(enqueue(), "launching what is timed");
    Check(cudaEventRecord(end_.get(), stream_), "recording an event");
    Check(cudaEventSynchronize(end_.get()), "running what is timed");
    float milliseconds = 0;
    Check(cudaEventElapsedTime(&milliseconds, begin_.get(), end_.get()), "reading a time");
    return milliseconds * 1e-3;
  }

 private:
  cudaStream_t stream_;
  gpu::Event begin_, end_;
};

gpu::GraphExec Repeat(const Launcher& launch, int launches, int slots, cudaStream_t stream) {
  gpu::Capture capture = Value(gpu::Capture::Begin(stream));
  for (int i = 0; i < launches; ++i) Check(launch(i % slots, stream), "capturing a launch");
  const gpu::Graph graph = Value(std::move(capture).End());
  return Value(gpu::Instantiate(graph));
}

struct Entrant {
  gpu::GraphExec graph;
  int launches = 1;
  bool slow = false;
  std::vector<double> seconds;
};

}  // namespace

Timing Summarize(std::vector<double> seconds, int launches) {
  std::sort(seconds.begin(), seconds.end());
  const std::size_t n = seconds.size();
  if (n == 0) return {};
  return {.median = (seconds[(n - 1) / 2] + seconds[n / 2]) / 2,
          .least = seconds.front(),
          .greatest = seconds.back(),
          .launches = launches,
          .rounds = static_cast<int>(n)};
}

double SecondsOfOne(const Launcher& launch, cudaStream_t stream) {
  Check(launch(0, stream), "launching for the first time");
  return EventTimer(stream).Seconds([&] { return launch(0, stream); });
}

void Replay(const Launcher& launch, cudaStream_t stream) {
  const gpu::GraphExec graph = Repeat(launch, 1, 1, stream);
  Check(cudaGraphLaunch(graph.get(), stream), "launching a graph");
  Check(cudaStreamSynchronize(stream), "running a graph");
}

std::vector<Timing> TimeInTurns(std::span<const Launcher> launchers, int slots, int rounds,
                                cudaStream_t stream) {
  EventTimer timer(stream);
  std::vector<Entrant> entrants;
  for (const Launcher& launch : launchers) {
    const double one = SecondsOfOne(launch, stream);
    Entrant entrant;
    entrant.launches =
        static_cast<int>(std::clamp(std::ceil(kSecondsPerTiming / one), 1.0, double{kMaxLaunches}));
    // Every slot as often as the others.
    if (one < kSlow) entrant.launches = (entrant.launches + slots - 1) / slots * slots;
    entrant.slow = one * entrant.launches > kSlow;
    entrant.graph = Repeat(launch, entrant.launches, slots, stream);
    timer.Seconds([&] { return cudaGraphLaunch(entrant.graph.get(), stream); });  // warms up
    entrants.push_back(std::move(entrant));
  }
  std::vector<std::size_t> order(entrants.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937 random(1);
  for (int round = 0; round < rounds; ++round) {
    // Nobody is always to follow the same neighbour, which may leave the chip hot or at rest.
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t i : order) {
      Entrant& entrant = entrants[i];
      if (entrant.slow && round % 5 != 0) continue;
      entrant.seconds.push_back(timer.Seconds([&] { return cudaGraphLaunch(entrant.graph.get(), stream); }) /
                                entrant.launches);
    }
  }
  std::vector<Timing> timings;
  for (const Entrant& entrant : entrants) timings.push_back(Summarize(entrant.seconds, entrant.launches));
  return timings;
}

}  // namespace warpline::bench
