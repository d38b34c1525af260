// cuBLASLt at its best: the fastest of the algorithms that its heuristic proposes, found by measuring.
#ifndef WARPLINE_KERNELS_BENCH_HARNESS_CUBLAS_BEST_H_
#define WARPLINE_KERNELS_BENCH_HARNESS_CUBLAS_BEST_H_

#include "kernels/bench/harness/device.h"
#include "kernels/bench/harness/operand_slots.h"
#include "kernels/bench/harness/timing.h"
#include "kernels/problem.h"

namespace warpline::bench {

// Of the first 16. Empty if `cublas` does not support the problem, or no algorithm runs. Everything given
// must outlive it.
Launcher FindBestOfCublas(const GemmProblem& problem, const OperandSlots& slots, const Device& device);

}  // namespace warpline::bench

#endif  // WARPLINE_KERNELS_BENCH_HARNESS_CUBLAS_BEST_H_
