// Timing of launches against each other: in turns, so that all see the same clocks and neighbours.
#ifndef WARPLINE_KERNELS_BENCH_HARNESS_TIMING_H_
#define WARPLINE_KERNELS_BENCH_HARNESS_TIMING_H_

#include <cuda_runtime_api.h>

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace warpline::bench {

// Enqueues one launch on the buffers of `slot`; must be able to be captured.
using Launcher = std::function<cudaError_t(int slot, cudaStream_t stream)>;

// Seconds a launch.
struct Timing {
  double median = 0, least = 0, greatest = 0;
  int launches = 0;  // in a row, as one graph, for each timing
  int rounds = 0;
};

Timing Summarize(std::vector<double> seconds, int launches);

// Returns the seconds of one launch on slot 0, measured with CUDA events after a warm-up launch. It is a
// single measurement: use it only for estimates.
double SecondsOfOne(const Launcher& launch, cudaStream_t stream);

// One launch on slot 0, captured as a graph and replayed. Waits for it.
void Replay(const Launcher& launch, cudaStream_t stream);

// Each round times each launcher once: a graph of enough launches for about 2 ms, which walks over the slots
// in turn. The gaps between them are those of a graph (about a microsecond), not of launch calls. Launchers
// of more than 20 ms sit out four rounds of five.
std::vector<Timing> TimeInTurns(std::span<const Launcher> launchers, int slots, int rounds,
                                cudaStream_t stream);

}  // namespace warpline::bench

#endif  // WARPLINE_KERNELS_BENCH_HARNESS_TIMING_H_
