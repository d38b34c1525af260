// The table of problems that users send, apart from what measures them, so that tests without CUDA read it.
#ifndef WARPLINE_KERNELS_BENCH_SUITES_BREADTH_LINES_H_
#define WARPLINE_KERNELS_BENCH_SUITES_BREADTH_LINES_H_

#include <span>
#include <string_view>

namespace warpline::bench {

// In the form of kernels/problem_text.h.
std::span<const std::string_view> BreadthLines();

}  // namespace warpline::bench

#endif  // WARPLINE_KERNELS_BENCH_SUITES_BREADTH_LINES_H_
