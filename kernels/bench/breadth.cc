#include "kernels/bench/breadth.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "kernels/bench/check.h"
#include "kernels/bench/labels.h"

namespace warpline::bench {
namespace {

// One line, and the words of it that are left to understand.
class Line {
 public:
  explicit Line(std::string_view text)
      : text_(text), words_(absl::StrSplit(std::string(text), ' ', absl::SkipEmpty())) {}

  std::string Take(const char* what) {
    if (words_.empty()) Refuse(what);
    std::string word = words_.front();
    words_.erase(words_.begin());
    return word;
  }
  bool empty() const { return words_.empty(); }

  std::int64_t Number(std::string_view digits) const {
    std::int64_t number = 0;
    if (!absl::SimpleAtoi(std::string(digits), &number)) Refuse("a number");
    return number;
  }
  Shape Sizes(const std::string& word) const {
    Shape shape;
    for (const std::string& size : std::vector<std::string>(absl::StrSplit(word, 'x'))) {
      shape.Append(Number(size));
    }
    return shape;
  }
  std::vector<int> Axes(const std::string& word, int rank) const {
    std::vector<int> axes;
    for (const std::string& axis : std::vector<std::string>(absl::StrSplit(word, ','))) {
      axes.push_back(static_cast<int>(Number(axis)));
      if (axes.back() < 0 || axes.back() >= rank) Refuse("an axis");
    }
    return axes;
  }
  DType Type(std::string_view name) const {
    for (DType dtype : kAllDTypes) {
      if (Name(dtype) == name) return dtype;
    }
    Refuse("a type");
  }
  [[noreturn]] void Refuse(const char* what) const {
    throw Failure(absl::StrCat("\"", std::string(text_), "\": expected ", what));
  }

 private:
  std::string_view text_;
  std::vector<std::string> words_;
};

Problem ParseTranspose(Line& line, DType dtype, const Shape& shape) {
  TransposeProblem problem;
  problem.dtype = dtype;
  problem.shape = shape;
  const std::vector<int> perm = line.Axes(line.Take("the order of the axes"), shape.rank);
  std::vector<int> sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  if (std::unique(sorted.begin(), sorted.end()) != sorted.end() || std::ssize(perm) != shape.rank) {
    line.Refuse("each axis once");
  }
  std::copy(perm.begin(), perm.end(), problem.perm.begin());
  return problem;
}

Problem ParseReduce(Line& line, ReduceOp op, DType dtype, const Shape& shape) {
  ReduceProblem problem;
  problem.op = op;
  problem.dtype = dtype;
  problem.shape = shape;
  const std::string axes = line.Take("axes");
  if (axes == "all") {
    problem.axes_mask = (1u << shape.rank) - 1;
  } else {
    for (int axis : line.Axes(axes, shape.rank)) problem.axes_mask |= 1u << axis;
  }
  return problem;
}

Problem ParseGemm(Line& line, bool tf32, DType dtype, const Shape& shape) {
  if (shape.rank != 3) line.Refuse("m, n and k");
  GemmProblem problem = MakeGemm(dtype, shape[0], shape[1], shape[2]);
  if (tf32) problem.precision = Precision::kTf32;
  while (!line.empty()) {
    const std::string word = line.Take("");
    if (word == "nn" || word == "nt" || word == "tn" || word == "tt") {
      problem.trans_a = word[0] == 't';
      problem.trans_b = word[1] == 't';
      if (problem.trans_a) problem.lda = problem.m;
      if (problem.trans_b) problem.ldb = problem.k;
    } else if (word == "bias") {
      problem.has_bias = true;
    } else if (word == "relu") {
      problem.activation = Activation::kRelu;
    } else if (word == "gelu") {
      problem.activation = Activation::kGelu;
    } else if (word[0] == 'x') {
      problem.batch = GemmBatch::Dense(line.Number(word.substr(1)));
    } else if (word[0] == '>') {
      problem.out_dtype = line.Type(word.substr(1));
    } else {
      line.Refuse("nn, nt, tn, tt, bias, relu, gelu, xBATCH or >TYPE");
    }
  }
  return problem;
}

Problem ParseElementwise(Line& line, ElementwiseOp op, DType dtype, const Shape& shape) {
  ElementwiseProblem problem;
  problem.op = op;
  problem.dtype = problem.out_dtype = dtype;
  problem.shape = shape;
  problem.x_strides = problem.y_strides = RowMajorStrides(shape);
  if (op == ElementwiseOp::kCast) {
    const std::string to = line.Take("the type of the result");
    if (to[0] != '>') line.Refuse(">TYPE");
    problem.out_dtype = line.Type(to.substr(1));
  } else if (op == ElementwiseOp::kAdd && !line.empty()) {
    const std::string word = line.Take("axes");
    if (word[0] != '*') line.Refuse("*AXES");
    Shape smaller = shape;
    const std::vector<int> axes = line.Axes(word.substr(1), shape.rank);
    for (int axis : axes) smaller[axis] = 1;
    problem.y_strides = RowMajorStrides(smaller);
    for (int axis : axes) problem.y_strides[axis] = 0;
  }
  return problem;
}

std::optional<ReduceOp> ReduceOpOf(std::string_view name) {
  for (ReduceOp op : kAllReduceOps) {
    if (Name(op) == name) return op;
  }
  return std::nullopt;
}

Problem ParseOf(Line& line, const std::string& op, const std::string& type) {
  const bool tf32 = type == "tf32";
  const DType dtype = tf32 ? DType::kF32 : line.Type(type);
  const Shape shape = line.Sizes(line.Take("a shape"));
  if (op == "transpose") return ParseTranspose(line, dtype, shape);
  if (op == "gemm") return ParseGemm(line, tf32, dtype, shape);
  if (op == "cast") return ParseElementwise(line, ElementwiseOp::kCast, dtype, shape);
  if (op == "scale") return ParseElementwise(line, ElementwiseOp::kScale, dtype, shape);
  if (op == "add") return ParseElementwise(line, ElementwiseOp::kAdd, dtype, shape);
  if (const auto reduce = ReduceOpOf(op)) return ParseReduce(line, *reduce, dtype, shape);
  line.Refuse("an operation");
}

std::string_view GroupOf(const Problem& problem) {
  return std::holds_alternative<ElementwiseProblem>(problem) ? "elementwise" : OpName(problem);
}

}  // namespace

Problem ParseProblem(std::string_view text) {
  Line line(text);
  const std::string op = line.Take("an operation"), type = line.Take("a type");
  Problem problem = ParseOf(line, op, type);
  if (!line.empty()) line.Refuse("nothing more");
  return problem;
}

std::vector<Case> BreadthCases(std::span<const std::string> ops) {
  std::vector<Case> cases;
  for (std::string_view line : BreadthLines()) {
    Problem problem = ParseProblem(line);
    if (!ops.empty() && std::find(ops.begin(), ops.end(), GroupOf(problem)) == ops.end()) continue;
    cases.push_back({.problem = std::move(problem), .variants = {}, .choice_only = true});
  }
  if (cases.empty()) {
    throw Failure("--ops: expected some of transpose, gemm, reduce, elementwise");
  }
  return cases;
}

}  // namespace warpline::bench
