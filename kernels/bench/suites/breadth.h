// The problems that users send, beyond the ladders' squares: of each the server's own choice is measured.
#ifndef WARPLINE_KERNELS_BENCH_SUITES_BREADTH_H_
#define WARPLINE_KERNELS_BENCH_SUITES_BREADTH_H_

#include <span>
#include <string>
#include <vector>

#include "kernels/bench/suites/cases.h"

namespace warpline::bench {

// The problems of a file of such lines, with the server's own choice alone or with all variants. Throws
// Failure.
std::vector<Case> FileCases(const std::string& path, bool choice_only);

// The lines of these operations ("transpose", "gemm", "reduce", "map"; empty: all).
std::vector<Case> BreadthCases(std::span<const std::string> ops);

}  // namespace warpline::bench

#endif  // WARPLINE_KERNELS_BENCH_SUITES_BREADTH_H_
