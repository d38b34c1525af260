// Problems as lines of text, which people write, benchmarks list and files keep:
//
//   transpose TYPE SIZES AXES [ld=N]
//   REDUCTION TYPE SIZES AXES [>TYPE] [ddof=N] [ld=N]
//   gemm TYPE MxNxK [nn|nt|tn|tt] [xCOUNT] [>TYPE] [c] [bias] [relu|gelu] [lda=N] [ldb=N] [ldc=N]
//        [batch=SIZES a=STEPS b=STEPS c=STEPS]
//   cast TYPE SIZES >TYPE [x=STEPS]
//   scale TYPE SIZES [x=STEPS]
//   add TYPE SIZES [*AXES] [x=STEPS] [y=STEPS]
//   map SIZES TYPE[@STEPS]... =[@STEPS] NODE...
//
// SIZES are as 64x2048x8, AXES as 0,2 or all, STEPS as 0,1: elements between neighbours along each axis, or
// of a batch matrices; they may be negative. cast, scale and add are short forms of maps. REDUCTION is sum,
// max and so on; the TYPE of a product may be tf32. *AXES: y is broadcast along them. A map has the type of
// each input, and its steps unless it is dense, and behind = those of its result; a NODE is as add(0,1),
// constant:f32(0), index:i64(1) or cast:f16(2): the operation, the type of its result where it is not that of
// its operands, and the numbers of its operands.
#ifndef WARPLINE_KERNELS_PROBLEM_TEXT_H_
#define WARPLINE_KERNELS_PROBLEM_TEXT_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/problem.h"

namespace warpline {

// INVALID_ARGUMENT with the text and what was expected.
absl::StatusOr<Problem> ParseProblem(std::string_view text);

// One a line; what follows a # is a comment. INVALID_ARGUMENT also with `source`, where the text comes from,
// and the number of the line.
absl::StatusOr<std::vector<Problem>> ParseProblems(std::string_view text, std::string_view source);

// The shortest line that means the problem. Equal for two problems exactly when they are the same. Of arrays
// without axes or elements, of maps with several results, and of operations that are not above, there is
// none: empty.
std::string ProblemText(const Problem& problem);

}  // namespace warpline

#endif  // WARPLINE_KERNELS_PROBLEM_TEXT_H_
