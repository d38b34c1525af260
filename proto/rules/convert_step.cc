#include "proto/rules/convert_step.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/field_error.h"
#include "kernels/map/pair.h"
#include "kernels/status_macros.h"
#include "proto/rules/known_fields.h"
#include "proto/rules/operand_checks.h"
#include "proto/rules/scalar_class.h"
#include "proto/rules/tensor_rules.h"
#include "proto/rules/views.h"

namespace warpline {
namespace {

bool IsCast(DType dtype) { return Has(RowOf(MapOp::kCast).takes, dtype); }

absl::StatusOr<ReduceOp> CheckReduceOp(v1::ReduceOp op) {
  // Each number of the API's enumeration is the ReduceOp value plus one.
  static_assert(static_cast<int>(ReduceOp::kSum) + 1 == v1::REDUCE_OP_SUM);
  static_assert(static_cast<int>(ReduceOp::kLogSumExp) + 1 == v1::REDUCE_OP_LOGSUMEXP);
  static_assert(kAllReduceOps.size() == v1::REDUCE_OP_LOGSUMEXP);
  if (op >= v1::REDUCE_OP_SUM && op <= v1::REDUCE_OP_LOGSUMEXP) return kAllReduceOps[op - 1];
  std::string names;
  for (ReduceOp each : kAllReduceOps) {
    absl::StrAppend(&names, names.empty() ? "" : ", ", std::string(Name(each)), " (",
                    static_cast<int>(each) + 1, ")");
  }
  return UnknownNumber("op", op, names);
}

absl::StatusOr<std::uint32_t> CheckAxes(const std::vector<std::int32_t>& axes, int rank) {
  if (axes.empty()) return (1u << rank) - 1;
  std::uint32_t mask = 0;
  for (std::int32_t axis : axes) {
    if (axis < -rank || axis >= rank) {
      return FieldError("axes", absl::StrCat("axis ", axis, " is outside of [", -rank, ", ", rank, ")"));
    }
    const std::uint32_t bit = 1u << (axis < 0 ? axis + rank : axis);
    if (mask & bit) return FieldError("axes", absl::StrCat("axis ", axis, " is named twice"));
    mask |= bit;
  }
  return mask;
}

absl::StatusOr<DType> CheckReduceOutDType(v1::DataType data_type, ReduceOp op, DType input) {
  const DType usual = DefaultOutDType(op, input);
  if (data_type == v1::DATA_TYPE_UNSPECIFIED) return usual;
  ASSIGN_OR_RETURN(const DType out, CheckDataType("out_data_type", data_type));
  if (out == usual) return out;
  const std::string name(Name(op));
  const auto refused = [&](const std::string& why) {
    return FieldError("out_data_type", absl::StrCat(TypeName(out), ": ", why));
  };
  if (IsArg(op) || op == ReduceOp::kAny || op == ReduceOp::kAll || op == ReduceOp::kCountNonzero) {
    return refused(absl::StrCat(name, " gives ", TypeName(usual)));
  }
  if (!IsReal(out)) return refused(absl::StrCat("supported: ", NamesWhere(IsReal)));
  if (IsFloat(usual) && !IsFloat(out)) {
    return refused(absl::StrCat(name, " of ", TypeName(input), " is a floating-point number"));
  }
  return out;
}

}  // namespace

absl::StatusOr<ConvertedStep> ConvertTranspose(const Operand& x, const TransposeOptions& options) {
  TransposeProblem problem{.dtype = x.dtype, .shape = x.shape, .row_stride = *RowStrideOf(x)};
  ASSIGN_OR_RETURN(problem.perm, CheckPerm(x, options.perm));
  ConvertedStep converted;
  ASSIGN_OR_RETURN(converted.output, DenseResult(x.field + ".shape", x.dtype, problem.OutputShape()));
  converted.step.problem = problem;
  Read(x, converted.step);
  return converted;
}

absl::StatusOr<ConvertedStep> ConvertReduce(const Operand& x, const ReduceOptions& options) {
  RETURN_IF_ERROR(CheckTakes(x, "reduce", IsReal));
  const int rank = x.shape.rank;
  ReduceProblem problem{.dtype = x.dtype, .shape = x.shape};
  problem.row_stride = *RowStrideOf(x);
  ASSIGN_OR_RETURN(problem.op, CheckReduceOp(options.op));
  ASSIGN_OR_RETURN(problem.axes_mask, CheckAxes(options.axes, rank));
  ASSIGN_OR_RETURN(problem.out_dtype, CheckReduceOutDType(options.out_data_type, problem.op, x.dtype));
  const std::string name(Name(problem.op));
  const int reduced = std::popcount(problem.axes_mask);
  if (IsArg(problem.op) && reduced > 1 && reduced < rank) {
    return FieldError("axes", absl::StrCat(name, " over ", reduced, " of ", rank,
                                           " axes; it goes over one axis, or over all of them"));
  }
  if (!HasIdentity(problem.op) && problem.ReducedCount() == 0 && problem.OutputShape(false).Count() > 0) {
    return FieldError(x.field + ".shape",
                      absl::StrCat(name, " over no elements of ", ToString(x.shape), " has no value"));
  }
  const bool takes_ddof = problem.op == ReduceOp::kVar || problem.op == ReduceOp::kStd;
  if (options.ddof < 0) return FieldError("ddof", absl::StrCat(options.ddof, "; the least is 0"));
  if (options.ddof > 0 && !takes_ddof) {
    return FieldError("ddof",
                      absl::StrCat(options.ddof, ", but only var and std have one; ", name, " has not"));
  }
  problem.ddof = options.ddof;
  ConvertedStep converted;
  ASSIGN_OR_RETURN(converted.output, DenseResult(x.field + ".shape", problem.OutDType(),
                                                 problem.OutputShape(options.keepdims)));
  converted.step.problem = problem;
  Read(x, converted.step);
  return converted;
}

absl::StatusOr<ConvertedStep> ConvertCast(const Operand& x, v1::DataType data_type) {
  RETURN_IF_ERROR(CheckTakes(x, "cast", IsCast));
  ASSIGN_OR_RETURN(const DType out, CheckDataType("data_type", data_type, IsCast));
  if (!IsCast(out)) {
    return FieldError(
        "data_type", absl::StrCat("nothing is cast to ", TypeName(out), "; supported: ", NamesWhere(IsCast)));
  }
  if (!IsReal(x.dtype) && IsReal(out) && out != DType::kBool) {
    return FieldError("data_type", absl::StrCat(TypeName(x.dtype), " is not cast to ", TypeName(out),
                                                "; real, imag and abs give real numbers"));
  }
  ConvertedStep converted;
  ASSIGN_OR_RETURN(converted.output, DenseResult(x.field + ".shape", out, x.shape));
  converted.step.problem = ToMap(
      {.op = PairOp::kCast, .dtype = x.dtype, .out_dtype = out, .shape = x.shape, .x_strides = x.strides});
  Read(x, converted.step);
  return converted;
}

absl::StatusOr<ConvertedStep> ConvertScale(const Operand& x, const Scalar& factor) {
  RETURN_IF_ERROR(CheckTakes(x, "scale", [](DType dtype) { return IsInteger(dtype) || IsFloat(dtype); }));
  const bool integers = IsInteger(x.dtype);
  if (integers) RETURN_IF_ERROR(CheckInteger("factor", factor.value, -kExactIntegers, kExactIntegers));
  ConvertedStep converted;
  ASSIGN_OR_RETURN(converted.output, DenseResult(x.field + ".shape", x.dtype, x.shape));
  converted.step.problem = ToMap({.op = PairOp::kScale,
                                  .dtype = x.dtype,
                                  .out_dtype = x.dtype,
                                  .shape = x.shape,
                                  .x_strides = x.strides});
  converted.scalars = {{.alpha = factor, .beta = {}, .integers = integers}};
  Read(x, converted.step);
  return converted;
}

absl::StatusOr<ConvertedStep> ConvertAdd(const Operand& x, const Operand& y) {
  RETURN_IF_ERROR(CheckTakes(x, "add", IsReal));
  RETURN_IF_ERROR(CheckSameType(y, x.dtype, x.field));
  Shape shape;
  const int rank = std::max(x.shape.rank, y.shape.rank);
  // Returns the operand's axis that corresponds to axis i of the result; negative if it has none.
  const auto axis_of = [rank](const Operand& operand, int i) { return i - (rank - operand.shape.rank); };
  const auto size_of = [&](const Operand& operand, int i) {
    const int axis = axis_of(operand, i);
    return axis < 0 ? 1 : operand.shape[axis];
  };
  for (int i = 0; i < rank; ++i) {
    ASSIGN_OR_RETURN(const std::int64_t size,
                     BroadcastSize(y, axis_of(y, i), size_of(y, i), size_of(x, i), "the"));
    shape.Append(size);
  }
  const auto strides_of = [&](const Operand& operand) {
    const Strides& own = operand.strides;
    Strides strides{};
    for (int i = 0; i < rank; ++i) strides[i] = size_of(operand, i) == 1 ? 0 : own[axis_of(operand, i)];
    return strides;
  };
  ConvertedStep converted;
  ASSIGN_OR_RETURN(converted.output, DenseResult(x.field + ".shape", x.dtype, shape));
  converted.step.problem = ToMap({.op = PairOp::kAdd,
                                  .dtype = x.dtype,
                                  .out_dtype = x.dtype,
                                  .shape = shape,
                                  .x_strides = strides_of(x),
                                  .y_strides = strides_of(y)});
  Read(x, converted.step);
  Read(y, converted.step);
  return converted;
}

absl::Status CheckVariantName(std::string_view variant) {
  constexpr std::size_t kLimit = 64;
  if (variant.size() <= kLimit) return absl::OkStatus();
  return FieldError("variant",
                    absl::StrCat("a name of ", variant.size(), " bytes is above the limit of ", kLimit));
}

}  // namespace warpline
