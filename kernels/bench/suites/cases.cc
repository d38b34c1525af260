#include "kernels/bench/suites/cases.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "kernels/bench/harness/check.h"
#include "kernels/bench/report/labels.h"
#include "kernels/ladder/rungs.h"

namespace warpline::bench {
namespace {

constexpr std::string_view kTf32 = "tf32";

struct Default {
  std::string_view op, type;
  std::vector<Shape> shapes;
  bool unasked;  // measured if no type is asked for
};

// The default sizes of each operation. One stays in the L2 of an H200 (60 MB); the others are those of the
// articles and of the comparison with others. The GPU's own L2 decides whether a case is warm. On a GPU with
// a smaller L2, ask for smaller cases with --shapes.
const std::vector<Default>& Defaults() {
  static const std::vector<Default> defaults = {
      {"transpose", "f32", {{2048, 2048}, {8192, 8192}, {16384, 16384}}, true},
      {"transpose", "f64", {{2048, 2048}, {8192, 8192}}, true},
      {"transpose", "bf16", {{8192, 8192}}, false},
      {"transpose", "f16", {{8192, 8192}}, false},
      {"gemm", "f32", {{1024, 1024, 1024}, {2048, 2048, 2048}, {4096, 4096, 4096}}, true},
      {"gemm", kTf32, {{4096, 4096, 4096}}, false},
      {"gemm", "bf16", {{2048, 2048, 2048}, {4096, 4096, 4096}, {8192, 8192, 8192}}, true},
      {"gemm", "f16", {{4096, 4096, 4096}}, false},
      {"gemm", "f64", {{2048, 2048, 2048}}, false},
      {"reduce", "f32", {{std::int64_t{1} << 20}, {16384, 16384}}, true},
      {"reduce", "f64", {{16384, 16384}}, false},
      {"reduce", "bf16", {{16384, 16384}}, false},
      {"reduce", "f16", {{16384, 16384}}, false},
  };
  return defaults;
}

DType ParseType(std::string_view name) {
  if (name == kTf32) return DType::kF32;
  for (DType dtype : {DType::kF16, DType::kBF16, DType::kF32, DType::kF64}) {
    if (Name(dtype) == name) return dtype;
  }
  throw Failure(absl::StrCat("--dtypes: ", std::string(name), ": expected f16, bf16, f32, tf32 or f64"));
}

// None, if the operation has no such shape.
std::vector<Problem> ProblemsOf(std::string_view op, std::string_view type, const Shape& shape) {
  const DType dtype = ParseType(type);
  if (op == "gemm" && shape.rank == 3) {
    GemmProblem problem = MakeGemm(dtype, shape[0], shape[1], shape[2]);
    if (type == kTf32) problem.precision = Precision::kTf32;
    return {problem};
  }
  if (type == kTf32) return {};
  if (op == "transpose" && shape.rank == 2) return {MakeTranspose(dtype, shape[0], shape[1])};
  if (op == "reduce" && shape.rank == 1) return {MakeSum(dtype, shape, 1)};
  if (op == "reduce" && shape.rank == 2) {
    return {MakeSum(dtype, shape, 3), MakeSum(dtype, shape, 1), MakeSum(dtype, shape, 2)};
  }
  return {};
}

bool Contains(std::span<const std::string> list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

// True if `variants` is empty, or if one of the names is in the operation's table.
bool HasOneOf(const Problem& problem, std::span<const std::string> variants) {
  if (variants.empty()) return true;
  const auto search = [&](const auto& p) {
    for (const auto* row : Climb(p)) {
      const auto means = [&](const std::string& name) { return Answers(*row, name); };
      if (std::any_of(variants.begin(), variants.end(), means)) return true;
    }
    return false;
  };
  return std::visit(search, problem);
}

std::string Join(const Shape& shape) {
  return absl::StrJoin(shape.dims.begin(), shape.dims.begin() + shape.rank, "x");
}

}  // namespace

Shape ParseShape(const char* flag, const std::string& text) {
  constexpr std::int64_t kLargest = std::int64_t{1} << 32;
  Shape shape;
  for (const auto& part : absl::StrSplit(text, 'x')) {
    std::int64_t size = 0;
    if (shape.rank == 3 || !absl::SimpleAtoi(part, &size) || size < 1 || size > kLargest) {
      throw Failure(absl::StrCat(flag, ": ", text, ": expected one to three sizes from 1 to ", kLargest,
                                 ", as in 8192x8192"));
    }
    shape.Append(size);
  }
  return shape;
}

TransposeProblem MakeTranspose(DType dtype, std::int64_t rows, std::int64_t columns) {
  TransposeProblem problem;
  problem.dtype = dtype;
  problem.shape = {rows, columns};
  problem.perm[0] = 1;
  problem.perm[1] = 0;
  return problem;
}

GemmProblem MakeGemm(DType dtype, std::int64_t m, std::int64_t n, std::int64_t k) {
  GemmProblem problem;
  problem.dtype = dtype;
  problem.m = m, problem.n = n, problem.k = k;
  problem.lda = k, problem.ldb = n, problem.ldc = n;
  return problem;
}

ReduceProblem MakeSum(DType dtype, const Shape& shape, std::uint32_t axes_mask) {
  ReduceProblem problem;
  problem.dtype = dtype;
  problem.shape = shape;
  problem.axes_mask = axes_mask;
  return problem;
}

std::vector<Case> MakeCases(std::span<const std::string> ops, std::span<const std::string> types,
                            std::span<const std::string> shapes, std::span<const std::string> variants) {
  for (const std::string& op : ops) {
    if (op != "transpose" && op != "gemm" && op != "reduce") {
      throw Failure(absl::StrCat("--ops: ", op, ": expected transpose, gemm or reduce",
                                 op == "map" ? ", as map is of --suite=breadth" : ""));
    }
  }
  for (const std::string& type : types) ParseType(type);
  std::vector<Shape> asked;
  for (const std::string& text : shapes) asked.push_back(ParseShape("--shapes", text));

  std::vector<Case> cases;
  for (const Default& row : Defaults()) {
    if (!ops.empty() && !Contains(ops, row.op)) continue;
    if (types.empty() ? !row.unasked : !Contains(types, row.type)) continue;
    for (const Shape& shape : asked.empty() ? row.shapes : asked) {
      for (Problem& problem : ProblemsOf(row.op, row.type, shape)) {
        if (!HasOneOf(problem, variants)) continue;
        cases.push_back({std::move(problem), {variants.begin(), variants.end()}});
      }
    }
  }
  const auto in_a_case = [&](const auto& is_in) {
    return std::any_of(cases.begin(), cases.end(), [&](const Case& c) { return is_in(c.problem); });
  };
  for (const std::string& name : variants) {
    const std::string one[] = {name};
    if (in_a_case([&](const Problem& problem) { return HasOneOf(problem, one); })) continue;
    throw Failure(
        absl::StrCat("--variants: ", name,
                     ": no case of the chosen operations, types and shapes has it; --list names them"));
  }
  for (const Shape& shape : asked) {
    if (in_a_case([&](const Problem& problem) { return ShapeName(problem) == Join(shape); })) continue;
    throw Failure(absl::StrCat("--shapes: ", Join(shape),
                               ": no chosen operation and type has it; transpositions have two sizes, sums "
                               "one or two, products three (MxNxK)"));
  }
  for (const std::string& type : types) {
    if (in_a_case([&](const Problem& problem) { return TypeName(problem) == type; })) continue;
    throw Failure(absl::StrCat("--dtypes: ", type, ": no chosen operation and shape has it"));
  }
  return cases;
}

}  // namespace warpline::bench
