#include "kernels/bench/suites/breadth.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "kernels/bench/harness/check.h"
#include "kernels/bench/report/labels.h"
#include "kernels/bench/suites/breadth_lines.h"
#include "kernels/map/pair.h"
#include "kernels/problem_text.h"

namespace warpline::bench {
namespace {

std::string_view GroupOf(const Problem& problem) {
  return std::holds_alternative<MapProblem>(problem) ? "map" : OpName(problem);
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
    throw Failure("--ops: expected some of transpose, gemm, reduce, map");
  }
  return cases;
}

std::vector<Case> FileCases(const std::string& path, bool choice_only) {
  std::ifstream file(path);
  if (!file) throw Failure(absl::StrCat("--problems: cannot open ", path));
  if (std::filesystem::is_directory(path)) {
    throw Failure(absl::StrCat("--problems: ", path, " is a directory"));
  }
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  std::vector<Case> cases;
  for (Problem& problem : Value(ParseProblems(text, path))) {
    const auto* map = std::get_if<MapProblem>(&problem);
    if (map != nullptr && !PairOf(*map).has_value()) {
      throw Failure(
          absl::StrCat("--problems: ", path,
                       " has a map of several operations, which tests/bench/maps_bench.py measures"));
    }
    cases.push_back({.problem = std::move(problem), .variants = {}, .choice_only = choice_only});
  }
  if (cases.empty()) throw Failure(absl::StrCat("--problems: ", path, " has none"));
  return cases;
}

}  // namespace warpline::bench
