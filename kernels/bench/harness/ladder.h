// All variants of an operation on one problem, and what they are compared with, timed in turns.
#ifndef WARPLINE_KERNELS_BENCH_HARNESS_LADDER_H_
#define WARPLINE_KERNELS_BENCH_HARNESS_LADDER_H_

#include "kernels/bench/harness/clocks.h"
#include "kernels/bench/harness/device.h"
#include "kernels/bench/harness/roofs.h"
#include "kernels/bench/report/result.h"
#include "kernels/bench/suites/cases.h"

namespace warpline::bench {

enum class Buffers { kAuto, kWarm, kRotating };

struct LadderOptions {
  int rounds = 15;
  Buffers buffers = Buffers::kAuto;
  double longest_launch_seconds = 0.5;  // variants that would take longer are left out
};

// Each variant's result is checked before it is timed; one that is wrong is marked and not timed.
CaseResult RunLadder(const Device& device, Roofs& roofs, ClockSampler& clocks, const Case& bench_case,
                     const LadderOptions& options);

// Launches each variant of the case once, between cudaProfilerStart and cudaProfilerStop, each after a marker
// kernel `VariantMarker` whose grid has as many blocks as the variant's number, from 1. Returns the rows that
// ran, in that order; results are checked too.
CaseResult LaunchOnce(const Device& device, const Case& bench_case);

}  // namespace warpline::bench

#endif  // WARPLINE_KERNELS_BENCH_HARNESS_LADDER_H_
