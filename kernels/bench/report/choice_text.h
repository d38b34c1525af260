// Choices of kernels as text, for people.
#ifndef WARPLINE_KERNELS_BENCH_REPORT_CHOICE_TEXT_H_
#define WARPLINE_KERNELS_BENCH_REPORT_CHOICE_TEXT_H_

#include <string>

#include "kernels/cuda_choice.h"
#include "kernels/problem.h"
#include "kernels/variant.h"

namespace warpline::bench {

// The name of the kernel that serves the problem on such a device with aligned operands, how it cuts the
// problem up, its workspace, and its cost: "rows: 4 CTAs share 64 results, workspace 4096 bytes". The parts
// that are zero or as for any kernel are left out. "nothing" if no kernel serves it.
std::string ChoiceText(const Problem& problem, const DeviceTraits& traits);

}  // namespace warpline::bench

#endif  // WARPLINE_KERNELS_BENCH_REPORT_CHOICE_TEXT_H_
