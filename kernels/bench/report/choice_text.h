// Choices of kernels as text, for people.
#ifndef WARPLINE_KERNELS_BENCH_REPORT_CHOICE_TEXT_H_
#define WARPLINE_KERNELS_BENCH_REPORT_CHOICE_TEXT_H_

#include <string>

#include "kernels/cuda_choice.h"
#include "kernels/problem.h"
#include "kernels/variant.h"

namespace warpline::bench {

// Describes the kernel that serves the problem on such a device with aligned operands: its name, how it cuts
// the problem up, its workspace and its cost. Example: "columns: 4096 results in 512 CTAs of 256 threads, 16
// to a result, workspace 2097152 bytes". Workspace and costs that have their default value are left out.
// Returns "nothing" if no kernel serves the problem.
std::string ChoiceText(const Problem& problem, const DeviceTraits& traits);

}  // namespace warpline::bench

#endif  // WARPLINE_KERNELS_BENCH_REPORT_CHOICE_TEXT_H_
