#include "kernels/bench/suites/breadth.h"

#include <algorithm>

#include "kernels/bench/harness/check.h"
#include "kernels/bench/report/labels.h"
#include "kernels/problem_text.h"

namespace warpline::bench {
namespace {

std::string_view GroupOf(const Problem& problem) {
  return std::holds_alternative<ElementwiseProblem>(problem) ? "elementwise" : OpName(problem);
}

}  // namespace

std::vector<Case> BreadthCases(std::span<const std::string> ops) {
  std::vector<Case> cases;
  for (std::string_view line : BreadthLines()) {
    Problem problem = Value(ParseProblem(line));
    if (!ops.empty() && std::find(ops.begin(), ops.end(), GroupOf(problem)) == ops.end()) continue;
    cases.push_back({.problem = std::move(problem), .variants = {}, .choice_only = true});
  }
  if (cases.empty()) {
    throw Failure("--ops: expected some of transpose, gemm, reduce, elementwise");
  }
  return cases;
}

}  // namespace warpline::bench
