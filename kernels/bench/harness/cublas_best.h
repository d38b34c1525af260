// cuBLASLt at its best: the fastest of the algorithms that its heuristic proposes, found by measuring.
#ifndef WARPLINE_KERNELS_BENCH_HARNESS_CUBLAS_BEST_H_
#define WARPLINE_KERNELS_BENCH_HARNESS_CUBLAS_BEST_H_

#include "kernels/bench/harness/device.h"
#include "kernels/bench/harness/operand_slots.h"
#include "kernels/bench/harness/timing.h"
#include "kernels/problem.h"

namespace warpline::bench {

// Finds the fastest of the first 16 algorithms. The launcher is empty if `cublas` does not support the
// problem, or if no algorithm runs. All arguments must outlive the launcher.
Launcher FindBestOfCublas(const GemmProblem& problem, const OperandSlots& slots, const Device& device);

}  // namespace warpline::bench

#endif  // WARPLINE_KERNELS_BENCH_HARNESS_CUBLAS_BEST_H_
