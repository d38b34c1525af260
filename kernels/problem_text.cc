#include "kernels/problem_text.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/map/pair.h"

namespace warpline {
namespace {

std::string Join(const std::int64_t* numbers, int count, const char* by) {
  return absl::StrJoin(std::span(numbers, static_cast<std::size_t>(count)), by);
}

std::string Sizes(const Shape& shape) { return Join(shape.dims.data(), shape.rank, "x"); }

void AppendNumber(std::string& text, const char* name, std::int64_t number, std::int64_t usual) {
  if (number != usual) absl::StrAppend(&text, " ", name, "=", number);
}

absl::string_view ToAbsl(std::string_view text) { return {text.data(), text.size()}; }

// Rows are dense if the row stride equals their length, or is 0.
void AppendRowStride(std::string& text, const Shape& shape, std::int64_t row_stride) {
  const std::int64_t row = RowSize(shape);
  AppendNumber(text, "ld", row_stride == 0 ? row : row_stride, row);
}

// Returns the text of all parts of a problem other than its operation, type and sizes.
std::string Details(const TransposeProblem& p) {
  std::string text = " ";
  for (int axis = 0; axis < p.shape.rank; ++axis) {
    absl::StrAppend(&text, axis == 0 ? "" : ",", static_cast<int>(p.perm[axis]));
  }
  AppendRowStride(text, p.shape, p.row_stride);
  return text;
}

std::string Details(const ReduceProblem& p) {
  std::string text = " ";
  if (p.axes_mask == (1u << p.shape.rank) - 1) {
    text += "all";
  } else {
    for (int axis = 0; axis < p.shape.rank; ++axis) {
      if (p.IsReduced(axis)) absl::StrAppend(&text, text.size() == 1 ? "" : ",", axis);
    }
  }
  const DType out = p.OutDType();
  if (out != DefaultOutDType(p.op, p.dtype)) absl::StrAppend(&text, " >", ToAbsl(Name(out)));
  AppendNumber(text, "ddof", p.ddof, 0);
  AppendRowStride(text, p.shape, p.row_stride);
  return text;
}

std::string Details(const GemmProblem& p) {
  std::string text;
  if (p.trans_a || p.trans_b) absl::StrAppend(&text, " ", p.trans_a ? "t" : "n", p.trans_b ? "t" : "n");
  const GemmBatch& batch = p.batch;
  const bool is_dense =
      batch.rank == 1 && batch.a[0] == 1 && batch.b[0] == 1 && (!p.has_c || batch.c[0] == 1);
  if (batch.rank > 0 && is_dense) absl::StrAppend(&text, " x", batch.Count());
  GemmProblem usual = p;
  usual.out_dtype.reset();
  if (p.OutDType() != usual.OutDType()) absl::StrAppend(&text, " >", ToAbsl(Name(p.OutDType())));
  if (p.has_c) text += " c";
  if (p.has_bias) text += " bias";
  if (p.activation == Activation::kRelu) text += " relu";
  if (p.activation == Activation::kGelu) text += " gelu";
  AppendNumber(text, "lda", p.lda, p.trans_a ? p.m : p.k);
  AppendNumber(text, "ldb", p.ldb, p.trans_b ? p.k : p.n);
  if (p.has_c) AppendNumber(text, "ldc", p.ldc, p.n);
  if (batch.rank > 0 && !is_dense) {
    absl::StrAppend(&text, " batch=", Join(batch.dims, batch.rank, "x"),
                    " a=", Join(batch.a, batch.rank, ","), " b=", Join(batch.b, batch.rank, ","));
    if (p.has_c) absl::StrAppend(&text, " c=", Join(batch.c, batch.rank, ","));
  }
  return text;
}

bool HasSteps(const PairMap& p, const Strides& steps, const Strides& of) {
  return std::equal(steps.begin(), steps.begin() + p.shape.rank, of.begin());
}

std::string Details(const PairMap& p) {
  std::string text;
  const auto append = [&](const char* name, const Strides& steps) {
    if (HasSteps(p, steps, RowMajorStrides(p.shape))) return;
    absl::StrAppend(&text, " ", name, "=", Join(steps.data(), p.shape.rank, ","));
  };
  if (p.op == PairOp::kCast) absl::StrAppend(&text, " >", ToAbsl(Name(p.out_dtype)));
  append("x", p.x_strides);
  if (ReadsY(p.op)) append("y", p.y_strides);
  return text;
}

// Returns the complete text. A map lists the types of its inputs instead of one type, or has one of the short
// forms.
std::string MapText(const MapProblem& p) {
  if (const std::optional<PairMap> pair = PairOf(p)) {
    return absl::StrCat(ToAbsl(Name(pair->op)), " ", ToAbsl(Name(pair->dtype)), " ", Sizes(p.shape),
                        Details(*pair));
  }
  std::string text = absl::StrCat("map ", Sizes(p.shape));
  const Strides dense = RowMajorStrides(p.shape);
  for (const MapInput& input : p.inputs) {
    absl::StrAppend(&text, " ", ToAbsl(Name(input.dtype)));
    if (std::equal(dense.begin(), dense.begin() + p.shape.rank, input.strides.begin())) continue;
    absl::StrAppend(&text, "@", Join(input.strides.data(), p.shape.rank, ","));
  }
  absl::StrAppend(&text, " =");
  if (p.OutStrides() != dense) absl::StrAppend(&text, "@", Join(p.OutStrides().data(), p.shape.rank, ","));
  for (const MapNode& node : p.nodes) {
    absl::StrAppend(&text, " ", ToAbsl(Name(node.op)));
    if (RowOf(node.op).result == MapResult::kGiven) absl::StrAppend(&text, ":", ToAbsl(Name(node.dtype)));
    const auto operands = static_cast<std::size_t>(std::max(RowOf(node.op).operands, 1));
    absl::StrAppend(&text, "(", absl::StrJoin(std::span(node.operands).first(operands), ","), ")");
  }
  return text;
}

std::string OpName(const Problem& problem) {
  const auto* reduce = std::get_if<ReduceProblem>(&problem);
  return std::string(reduce != nullptr ? Name(reduce->op) : Name(OpOf(problem)));
}

std::string TypeName(const Problem& problem) {
  const auto* gemm = std::get_if<GemmProblem>(&problem);
  if (gemm != nullptr && gemm->precision == Precision::kTf32) return "tf32";
  return std::string(Name(DTypeOf(problem)));
}

Shape ShapeOf(const TransposeProblem& p) { return p.shape; }
Shape ShapeOf(const ReduceProblem& p) { return p.shape; }
Shape ShapeOf(const MapProblem& p) { return p.shape; }
Shape ShapeOf(const GemmProblem& p) { return {p.m, p.n, p.k}; }

}  // namespace

std::string ProblemText(const Problem& problem) {
  return std::visit(
      [&](const auto& p) -> std::string {
        if constexpr (requires { ShapeOf(p); }) {
          const Shape shape = ShapeOf(p);
          if (shape.rank == 0 || shape.Count() == 0) return "";
          if constexpr (std::is_same_v<decltype(p), const MapProblem&>) {
            return p.further.empty() ? MapText(p) : "";
          } else {
            return absl::StrCat(OpName(problem), " ", TypeName(problem), " ", Sizes(shape), Details(p));
          }
        } else {
          return "";
        }
      },
      problem);
}

}  // namespace warpline
