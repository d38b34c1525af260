#include "kernels/bench/report/labels.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace warpline::bench {
namespace {

std::string Join(const Shape& shape) {
  return absl::StrJoin(shape.dims.begin(), shape.dims.begin() + shape.rank, "x");
}

std::string Detail(const TransposeProblem& problem) {
  const std::string perm = PermName(problem);
  return perm == "1,0" ? "" : absl::StrCat(" perm ", perm);
}

std::string Detail(const GemmProblem& problem) {
  std::string detail;
  const auto letter = [](bool transposed) { return transposed ? "t" : "n"; };
  if (problem.trans_a || problem.trans_b) {
    absl::StrAppend(&detail, " ", letter(problem.trans_a), letter(problem.trans_b));
  }
  if (problem.batch.rank > 0) absl::StrAppend(&detail, " batch ", problem.batch.Count());
  if (problem.has_bias) absl::StrAppend(&detail, " bias");
  if (problem.activation == Activation::kRelu) absl::StrAppend(&detail, " relu");
  if (problem.activation == Activation::kGelu) absl::StrAppend(&detail, " gelu");
  if (problem.out_dtype) absl::StrAppend(&detail, " to ", std::string(Name(*problem.out_dtype)));
  return detail;
}

std::string Detail(const ReduceProblem& problem) {
  const std::string axes = AxesName(problem);
  if (axes == "all") return " all";
  return absl::StrCat(axes.size() > 1 ? " axes " : " axis ", axes);
}

std::string Detail(const MapProblem& problem) {
  const std::optional<PairMap> pair = PairOf(problem);
  if (!pair.has_value()) return absl::StrCat(" nodes ", problem.nodes.size());
  if (pair->op == PairOp::kCast) return absl::StrCat(" to ", std::string(Name(pair->out_dtype)));
  std::string detail;
  for (int axis = 0; axis < problem.shape.rank; ++axis) {
    if (ReadsY(pair->op) && pair->y_strides[axis] == 0 && problem.shape[axis] != 1) {
      absl::StrAppend(&detail, " broadcast ", axis);
    }
  }
  return detail;
}

// Operations of which no problem is written as a line of text (kernels/problem_text.h).
template <typename ProblemT>
std::string Detail(const ProblemT&) {
  return "";
}

}  // namespace

std::optional<PairMap> PairIn(const Problem& problem) {
  const auto* map = std::get_if<MapProblem>(&problem);
  return map == nullptr ? std::nullopt : PairOf(*map);
}

std::string_view OpName(const Problem& problem) {
  const std::optional<PairMap> pair = PairIn(problem);
  return pair.has_value() ? Name(pair->op) : Name(OpOf(problem));
}

std::string_view TypeName(const Problem& problem) {
  const auto* gemm = std::get_if<GemmProblem>(&problem);
  if (gemm != nullptr && gemm->precision == Precision::kTf32) return "tf32";
  return Name(DTypeOf(problem));
}

std::string ShapeName(const Problem& problem) {
  if (const auto* gemm = std::get_if<GemmProblem>(&problem)) return Join({gemm->m, gemm->n, gemm->k});
  if (const auto* reduce = std::get_if<ReduceProblem>(&problem)) return Join(reduce->shape);
  if (const auto* map = std::get_if<MapProblem>(&problem)) return Join(map->shape);
  const auto* transpose = std::get_if<TransposeProblem>(&problem);
  return transpose != nullptr ? Join(transpose->shape) : "";
}

std::string AxesName(const Problem& problem) {
  const auto* reduce = std::get_if<ReduceProblem>(&problem);
  if (reduce == nullptr) return "";
  if (reduce->axes_mask == (1u << reduce->shape.rank) - 1) return "all";
  std::string axes;
  for (int axis = 0; axis < reduce->shape.rank; ++axis) {
    if (reduce->IsReduced(axis)) absl::StrAppend(&axes, axes.empty() ? "" : ",", axis);
  }
  return axes;
}

std::string PermName(const Problem& problem) {
  const auto* transpose = std::get_if<TransposeProblem>(&problem);
  if (transpose == nullptr) return "";
  return absl::StrJoin(transpose->perm.begin(), transpose->perm.begin() + transpose->shape.rank, ",",
                       [](std::string* out, std::int8_t axis) { absl::StrAppend(out, int{axis}); });
}

std::string Label(const Problem& problem) {
  const auto* reduce = std::get_if<ReduceProblem>(&problem);
  std::string name(reduce != nullptr && reduce->op != ReduceOp::kSum ? Name(reduce->op) : OpName(problem));
  return absl::StrCat(name, " ", std::string(TypeName(problem)), " ", ShapeName(problem),
                      std::visit([](const auto& p) { return Detail(p); }, problem));
}

}  // namespace warpline::bench
