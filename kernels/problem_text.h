// Problems as lines of text. People write them, benchmarks list them, and files store them:
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
// SIZES are written as 64x2048x8, AXES as 0,2 or all, STEPS as 0,1. STEPS are strides in elements along each
// axis, or in matrices along each batch axis; they may be negative. cast, scale and add are short forms of
// maps. REDUCTION is sum, max and so on; the TYPE of a product may be tf32. *AXES: y is broadcast along these
// axes. For a map, each input has its type, with its steps unless it is dense. The steps of the result follow
// the =. A NODE is written as add(0,1), constant:f32(0), index:i64(1) or cast:f16(2): the operation, the type
// of its result if that is not the type of its operands, and the numbers of its operands.
#ifndef WARPLINE_KERNELS_PROBLEM_TEXT_H_
#define WARPLINE_KERNELS_PROBLEM_TEXT_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/problem.h"

namespace warpline {

// Returns INVALID_ARGUMENT with the text and what was expected.
absl::StatusOr<Problem> ParseProblem(std::string_view text);

// Parses one problem per line; a # starts a comment. INVALID_ARGUMENT also contains `source`, where the text
// comes from, and the line number.
absl::StatusOr<std::vector<Problem>> ParseProblems(std::string_view text, std::string_view source);

// Returns the shortest line for the problem. Two problems have equal lines exactly if they are equal. Returns
// "" if there is no line: for arrays without axes or elements, maps with several results, and operations that
// are not listed above.
std::string ProblemText(const Problem& problem);

}  // namespace warpline

#endif  // WARPLINE_KERNELS_PROBLEM_TEXT_H_
