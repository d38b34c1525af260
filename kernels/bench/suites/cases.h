// The problems that the ladders measure: dense, of two dimensions (reductions also of one).
#ifndef WARPLINE_KERNELS_BENCH_SUITES_CASES_H_
#define WARPLINE_KERNELS_BENCH_SUITES_CASES_H_

#include <span>
#include <string>
#include <vector>

#include "kernels/problem.h"

namespace warpline::bench {

struct Case {
  Problem problem;
  std::vector<std::string> variants;  // empty: all of the table
  bool choice_only = false;           // only what the server would choose
};

TransposeProblem MakeTranspose(DType dtype, std::int64_t rows, std::int64_t columns);
GemmProblem MakeGemm(DType dtype, std::int64_t m, std::int64_t n, std::int64_t k);
ReduceProblem MakeSum(DType dtype, const Shape& shape, std::uint32_t axes_mask);

// "8192x8192": one to three sizes. Throws Failure, which names the flag.
Shape ParseShape(const char* flag, const std::string& text);

// Returns the cases that the flags ask for; an empty list means the defaults. Shapes of three sizes (m, n, k)
// are for products. Shapes of two sizes are for transpositions and sums, of one size for sums. Throws Failure
// for text that it cannot parse.
std::vector<Case> MakeCases(std::span<const std::string> ops, std::span<const std::string> types,
                            std::span<const std::string> shapes, std::span<const std::string> variants);

}  // namespace warpline::bench

#endif  // WARPLINE_KERNELS_BENCH_SUITES_CASES_H_
