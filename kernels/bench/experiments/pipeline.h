// The experiments around the kernels: how host-resident tensors get to the device and back, and what a few
// settings of the GPU do. Each returns a table; every result is verified, and a wrong one throws Failure.
#ifndef WARPLINE_KERNELS_BENCH_EXPERIMENTS_PIPELINE_H_
#define WARPLINE_KERNELS_BENCH_EXPERIMENTS_PIPELINE_H_

#include <cstdint>
#include <vector>

#include "kernels/bench/experiments/experiment.h"
#include "kernels/bench/harness/device.h"

namespace warpline::bench {

struct PipelineOptions {
  std::int64_t rows = 8192, columns = 8192;  // of the host-resident f32 tensor
  int rounds = 5;
};

// Runs a long elementwise kernel and a transposition: in one stream, in several streams, and as a graph.
std::vector<Experiment> OverlapExperiments(const Device& device, const PipelineOptions& options);
// The same in short: four streams against one. For the articles' figures.
Experiment FourStreams(const Device& device, const PipelineOptions& options);
// Pageable, pinned, mapped; and, of 32 MiB tensors, managed memory with and without prefetching.
std::vector<Experiment> HostMemoryExperiments(const Device& device, const PipelineOptions& options);
// Something in the legacy default stream between the chunks, with streams that wait for it and that do not.
Experiment DefaultStreamTrap(const Device& device, const PipelineOptions& options);

// Kernels that do next to nothing, as calls in a stream and as a graph: what the host spends on launching.
Experiment Launches(const Device& device, const PipelineOptions& options);

// An L2 window that persists for a buffer that is read again and again, beside one that streams through.
Experiment CacheWindow(const Device& device, const PipelineOptions& options);
// The share of the L1 that is shared memory, for the tile kernel.
Experiment Carveout(const Device& device, const PipelineOptions& options);
// Compares what the occupancy API says about block sizes with what these sizes reach.
Experiment Occupancy(const Device& device, const PipelineOptions& options);

}  // namespace warpline::bench

#endif  // WARPLINE_KERNELS_BENCH_EXPERIMENTS_PIPELINE_H_
