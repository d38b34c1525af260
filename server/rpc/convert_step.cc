#include "server/rpc/convert_step.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/status_macros.h"
#include "server/engine/errors.h"
#include "server/rpc/convert_tensor.h"

namespace warpline {
namespace {

std::string Text(DType dtype) { return std::string(Name(dtype)); }

// INVALID_ARGUMENT naming the types that the operation takes, unless it takes the operand's.
absl::Status CheckTakes(const Operand& x, std::string_view operation, bool (*takes)(DType)) {
  if (takes(x.dtype)) return absl::OkStatus();
  return FieldError(x.field + ".data_type", absl::StrCat(std::string(operation), " does not take ",
                                                         Text(x.dtype), "; supported: ", NamesWhere(takes)));
}

absl::Status CheckSameType(const Operand& x, DType dtype, const std::string& of) {
  if (x.dtype == dtype) return absl::OkStatus();
  return FieldError(x.field + ".data_type", absl::StrCat(Text(x.dtype), ", but ", of, " has ", Text(dtype)));
}

// A result of shape and type; `field` is what to blame should it not fit into 63 bits.
absl::StatusOr<TensorSpec> DenseResult(const std::string& field, DType dtype, const Shape& shape) {
  ASSIGN_OR_RETURN(const std::size_t bytes, StorageBytes(field, dtype, shape, 0));
  return TensorSpec{dtype, shape, bytes};
}

absl::StatusOr<std::array<std::int8_t, kMaxRank>> CheckPerm(const Operand& x,
                                                            const std::vector<std::int32_t>& given) {
  const int rank = x.shape.rank;
  std::array<std::int8_t, kMaxRank> perm{};
  if (given.empty()) {
    for (int i = 0; i < rank; ++i) perm[i] = static_cast<std::int8_t>(i);
    if (rank >= 2) std::swap(perm[rank - 2], perm[rank - 1]);
    return perm;
  }
  if (static_cast<int>(given.size()) != rank) {
    return FieldError("perm", absl::StrCat("has ", given.size(), " entries; ", x.field, " has rank ", rank));
  }
  std::uint32_t seen = 0;
  for (int i = 0; i < rank; ++i) {
    const std::int32_t axis = given[i];
    if (axis < 0 || axis >= rank) {
      return FieldError("perm", absl::StrCat("entry ", i, " is ", axis, "; it must be in [0, ", rank, ")"));
    }
    if ((seen >> axis) & 1u) return FieldError("perm", absl::StrCat("axis ", axis, " is named twice"));
    seen |= 1u << axis;
    perm[i] = static_cast<std::int8_t>(axis);
  }
  return perm;
}

absl::StatusOr<Precision> CheckPrecision(v1::Precision precision) {
  switch (precision) {
    case v1::PRECISION_UNSPECIFIED:
    case v1::PRECISION_IEEE:
      return Precision::kIeee;
    case v1::PRECISION_TF32:
      return Precision::kTf32;
    default:
      return FieldError("precision", absl::StrCat("number ", static_cast<int>(precision),
                                                  " is none of ieee (1), tf32 (2)"));
  }
}

absl::StatusOr<Activation> CheckActivation(v1::Activation activation, DType dtype) {
  switch (activation) {
    case v1::ACTIVATION_UNSPECIFIED:
    case v1::ACTIVATION_NONE:
      return Activation::kNone;
    case v1::ACTIVATION_RELU:
    case v1::ACTIVATION_GELU:
      if (dtype == DType::kI8) return FieldError("activation", "products of i8 have none");
      return activation == v1::ACTIVATION_RELU ? Activation::kRelu : Activation::kGelu;
    default:
      return FieldError("activation", absl::StrCat("number ", static_cast<int>(activation),
                                                   " is none of none (1), relu (2), gelu (3)"));
  }
}

absl::StatusOr<DType> CheckGemmOutDType(v1::DataType data_type, const GemmProblem& problem) {
  if (data_type == v1::DATA_TYPE_UNSPECIFIED) return problem.OutDType();
  ASSIGN_OR_RETURN(const DType out, CheckDataType("out_data_type", data_type));
  const bool half = problem.dtype == DType::kF16 || problem.dtype == DType::kBF16;
  if (out == problem.OutDType() || (half && out == DType::kF32)) return out;
  return FieldError("out_data_type",
                    absl::StrCat(Text(out), " is not what a product of ", Text(problem.dtype),
                                 " can give: ", Text(problem.OutDType()), half ? " or f32" : ""));
}

// Of b against a, or of c against d: the size along an axis of the result to which both are broadcast.
absl::StatusOr<std::int64_t> BroadcastSize(const Operand& x, int axis, std::int64_t size, std::int64_t other,
                                           const char* what) {
  if (size == other || other == 1) return size;
  if (size == 1) return other;
  return FieldError(x.field + ".shape", absl::StrCat(what, " axis ", axis, " has size ", size,
                                                     ", which cannot be broadcast with ", other));
}

// Size of batch axis `axis`, counted from the innermost; 1 beyond the outermost.
std::int64_t BatchSize(const Shape& shape, int axis) {
  const int i = shape.rank - 3 - axis;
  return i < 0 ? 1 : shape[i];
}

// The batch axes of d, outermost first. `d` must not hold them yet.
absl::Status BroadcastBatches(const Operand& a, const Operand& b, Shape& d) {
  for (int axis = std::max(a.shape.rank, b.shape.rank) - 3; axis >= 0; --axis) {
    ASSIGN_OR_RETURN(const std::int64_t size,
                     BroadcastSize(b, b.shape.rank - 3 - axis, BatchSize(b.shape, axis),
                                   BatchSize(a.shape, axis), "batch"));
    d.Append(size);
  }
  return absl::OkStatus();
}

// Which matrices of the operands make those of d; c may be null.
GemmBatch BatchOf(const Shape& a, const Shape& b, const Shape* c, const Shape& d) {
  const int axes = d.rank - 2;
  // Matrices between neighbours, by axis from the innermost; 0 where there is only one to be had.
  const auto strides = [&](const Shape& shape) {
    Strides result{};
    std::int64_t stride = 1;
    for (int axis = 0; axis < axes; ++axis) {
      const std::int64_t size = BatchSize(shape, axis);
      result[axis] = size == 1 ? 0 : stride;
      stride *= size;
    }
    return result;
  };
  const Strides of_a = strides(a), of_b = strides(b), of_c = strides(c == nullptr ? d : *c);
  GemmBatch batch;
  for (int axis = axes - 1; axis >= 0; --axis) {
    batch.Append(BatchSize(d, axis), of_a[axis], of_b[axis], of_c[axis]);
  }
  return batch;
}

// Matrices of A that lie one after the other and meet the same B are one matrix of more rows.
void FoldBatch(GemmProblem& problem) {
  GemmBatch& batch = problem.batch;
  const int inner = batch.rank - 1;
  if (inner < 0 || problem.trans_a || batch.b[inner] != 0 || batch.a[inner] != 1) return;
  if (problem.has_c && batch.c[inner] != 1) return;
  const std::int64_t folded = batch.dims[inner];
  if (folded == 0) return;
  problem.m *= folded;
  batch = batch.Outer();
  // A and C are counted in the larger matrices now. Their axes are dense or broadcast, so it divides them.
  for (int i = 0; i < batch.rank; ++i) {
    batch.a[i] /= folded;
    batch.c[i] /= folded;
  }
}

absl::Status CheckC(const Operand& c, DType out, const Shape& d) {
  RETURN_IF_ERROR(CheckSameType(c, out, "the result"));
  const auto wrong = [&] {
    return FieldError(c.field + ".shape", absl::StrCat(ToString(c.shape), ", but the product is ",
                                                       ToString(d), "; only batch axes are broadcast"));
  };
  if (c.shape.rank < 2 || c.shape.rank > d.rank) return wrong();
  for (int i = 0; i < c.shape.rank; ++i) {
    const std::int64_t size = c.shape[c.shape.rank - 1 - i], wanted = d[d.rank - 1 - i];
    if (size != wanted && (i < 2 || size != 1)) return wrong();
  }
  return absl::OkStatus();
}

absl::Status CheckBias(const Operand& bias, DType dtype, DType out, std::int64_t n) {
  if (dtype == DType::kI8) return FieldError(bias.field, "products of i8 have no bias");
  RETURN_IF_ERROR(CheckSameType(bias, out, "the result"));
  if (bias.shape == Shape{n}) return absl::OkStatus();
  return FieldError(bias.field + ".shape",
                    absl::StrCat(ToString(bias.shape), ", but the product has ", n, " columns"));
}

// alpha, beta or a factor of integers.
absl::Status CheckInteger(const char* field, double value, std::int64_t least, std::int64_t greatest) {
  if (value >= static_cast<double>(least) && value <= static_cast<double>(greatest) &&
      value == std::trunc(value)) {
    return absl::OkStatus();
  }
  return FieldError(
      field, absl::StrFormat("%.17g; of integers it is an integer in [%d, %d]", value, least, greatest));
}

// Too large for a float becomes infinity, as in any rounding.
StepScalars ScalarsOf(double alpha, double beta, bool integers) {
  StepScalars scalars{.alpha_f32 = static_cast<float>(alpha),
                      .beta_f32 = static_cast<float>(beta),
                      .alpha_f64 = alpha,
                      .beta_f64 = beta};
  if (integers) {
    scalars.alpha_i64 = static_cast<std::int64_t>(alpha);
    scalars.beta_i64 = static_cast<std::int64_t>(beta);
  }
  return scalars;
}

absl::StatusOr<ReduceOp> CheckReduceOp(v1::ReduceOp op) {
  // The API's numbers are ours and one more.
  static_assert(static_cast<int>(ReduceOp::kSum) + 1 == v1::REDUCE_OP_SUM);
  static_assert(static_cast<int>(ReduceOp::kLogSumExp) + 1 == v1::REDUCE_OP_LOGSUMEXP);
  static_assert(kAllReduceOps.size() == v1::REDUCE_OP_LOGSUMEXP);
  if (op >= v1::REDUCE_OP_SUM && op <= v1::REDUCE_OP_LOGSUMEXP) return kAllReduceOps[op - 1];
  std::string names;
  for (ReduceOp each : kAllReduceOps) {
    absl::StrAppend(&names, names.empty() ? "" : ", ", std::string(Name(each)), " (",
                    static_cast<int>(each) + 1, ")");
  }
  return FieldError("op", absl::StrCat("number ", static_cast<int>(op), " is none of ", names));
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
    return FieldError("out_data_type", absl::StrCat(Text(out), ": ", why));
  };
  if (IsArg(op) || op == ReduceOp::kAny || op == ReduceOp::kAll || op == ReduceOp::kCountNonzero) {
    return refused(absl::StrCat(name, " gives ", Text(usual)));
  }
  if (!IsReal(out)) return refused(absl::StrCat("supported: ", NamesWhere(IsReal)));
  if (IsFloat(usual) && !IsFloat(out)) {
    return refused(absl::StrCat(name, " of ", Text(input), " is a floating-point number"));
  }
  return out;
}

}  // namespace

bool ReadsC(DType dtype, double beta) {
  return dtype == DType::kF64 || dtype == DType::kI8 ? beta != 0 : static_cast<float>(beta) != 0;
}

absl::StatusOr<ConvertedStep> ConvertTranspose(const Operand& x, const TransposeOptions& options) {
  TransposeProblem problem{.dtype = x.dtype, .shape = x.shape, .row_stride = x.row_stride};
  ASSIGN_OR_RETURN(problem.perm, CheckPerm(x, options.perm));
  ConvertedStep converted;
  ASSIGN_OR_RETURN(converted.output, DenseResult(x.field + ".shape", x.dtype, problem.OutputShape()));
  converted.step.problem = problem;
  converted.step.inputs = {x.tensor};
  return converted;
}

absl::StatusOr<ConvertedStep> ConvertGemm(const Operand& a, const Operand& b, const Operand* c,
                                          const Operand* bias, const GemmOptions& options) {
  RETURN_IF_ERROR(CheckTakes(a, "gemm", IsGemmInput));
  for (const Operand* operand : {&a, &b}) {
    if (operand->shape.rank >= 2) continue;
    return FieldError(operand->field + ".shape",
                      absl::StrCat("rank ", operand->shape.rank, " is below the least, 2"));
  }
  RETURN_IF_ERROR(CheckSameType(b, a.dtype, a.field));
  const bool integers = a.dtype == DType::kI8;
  GemmProblem problem{.dtype = a.dtype, .lda = a.row_stride, .ldb = b.row_stride};
  problem.trans_a = options.trans_a;
  problem.trans_b = options.trans_b;
  ASSIGN_OR_RETURN(problem.out_dtype, CheckGemmOutDType(options.out_data_type, problem));
  ASSIGN_OR_RETURN(problem.activation, CheckActivation(options.activation, a.dtype));
  ASSIGN_OR_RETURN(const Precision precision, CheckPrecision(options.precision));
  // Of no consequence to other types, which then need not have a graph for each precision.
  if (problem.dtype == DType::kF32) problem.precision = precision;

  const auto size = [](const Operand& x, bool columns) { return x.shape[x.shape.rank - (columns ? 1 : 2)]; };
  problem.m = size(a, problem.trans_a);
  problem.k = size(a, !problem.trans_a);
  problem.n = size(b, !problem.trans_b);
  if (const std::int64_t b_k = size(b, problem.trans_b); b_k != problem.k) {
    return FieldError(
        b.field + ".shape",
        absl::StrCat("inner size ", b_k, " of ", ToString(b.shape), problem.trans_b ? " transposed" : "",
                     ", but that of ", a.field, ", ", ToString(a.shape), problem.trans_a ? " transposed" : "",
                     ", is ", problem.k));
  }
  Shape d;
  RETURN_IF_ERROR(BroadcastBatches(a, b, d));
  d.Append(problem.m);
  d.Append(problem.n);
  ConvertedStep converted;
  ASSIGN_OR_RETURN(converted.output, DenseResult(a.field + ".shape", problem.OutDType(), d));

  if (integers) {
    constexpr std::int64_t kLeast = std::numeric_limits<std::int32_t>::min();
    constexpr std::int64_t kGreatest = std::numeric_limits<std::int32_t>::max();
    RETURN_IF_ERROR(CheckInteger("alpha", options.alpha, kLeast, kGreatest));
    RETURN_IF_ERROR(CheckInteger("beta", options.beta, kLeast, kGreatest));
  }
  Step& step = converted.step;
  step.scalars = ScalarsOf(options.alpha, options.beta, integers);
  step.inputs = {a.tensor, b.tensor};
  problem.has_c = ReadsC(a.dtype, options.beta);
  if (problem.has_c) {
    RETURN_IF_ERROR(CheckC(*c, problem.OutDType(), d));
    problem.ldc = c->row_stride;
    step.inputs.push_back(c->tensor);
  }
  problem.has_bias = bias != nullptr;
  if (problem.has_bias) {
    RETURN_IF_ERROR(CheckBias(*bias, a.dtype, problem.OutDType(), problem.n));
    step.inputs.push_back(bias->tensor);
  }
  problem.batch = BatchOf(a.shape, b.shape, problem.has_c ? &c->shape : nullptr, d);
  FoldBatch(problem);
  step.problem = problem;
  return converted;
}

absl::Status CheckUnreadC(const Operand& c, const ConvertedStep& gemm) {
  return CheckC(c, gemm.output.dtype, gemm.output.shape);
}

absl::StatusOr<ConvertedStep> ConvertReduce(const Operand& x, const ReduceOptions& options) {
  RETURN_IF_ERROR(CheckTakes(x, "reduce", IsReal));
  const int rank = x.shape.rank;
  ReduceProblem problem{.dtype = x.dtype, .shape = x.shape};
  problem.row_stride = x.row_stride;
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
  converted.step.inputs = {x.tensor};
  return converted;
}

absl::StatusOr<ConvertedStep> ConvertCast(const Operand& x, v1::DataType data_type) {
  RETURN_IF_ERROR(CheckTakes(x, "cast", IsReal));
  ASSIGN_OR_RETURN(const DType out, CheckDataType("data_type", data_type));
  if (!IsReal(out)) {
    return FieldError("data_type",
                      absl::StrCat("nothing is cast to ", Text(out), "; supported: ", NamesWhere(IsReal)));
  }
  ConvertedStep converted;
  ASSIGN_OR_RETURN(converted.output, DenseResult(x.field + ".shape", out, x.shape));
  converted.step.problem = ElementwiseProblem{.op = ElementwiseOp::kCast,
                                              .dtype = x.dtype,
                                              .out_dtype = out,
                                              .shape = x.shape,
                                              .x_strides = RowMajorStrides(x.shape, x.row_stride)};
  converted.step.inputs = {x.tensor};
  return converted;
}

absl::StatusOr<ConvertedStep> ConvertScale(const Operand& x, double factor) {
  RETURN_IF_ERROR(CheckTakes(x, "scale", [](DType dtype) { return IsInteger(dtype) || IsFloat(dtype); }));
  constexpr std::int64_t kLimit = std::int64_t{1} << 53;  // every integer up to it is a double
  if (IsInteger(x.dtype)) RETURN_IF_ERROR(CheckInteger("factor", factor, -kLimit, kLimit));
  ConvertedStep converted;
  ASSIGN_OR_RETURN(converted.output, DenseResult(x.field + ".shape", x.dtype, x.shape));
  converted.step.problem = ElementwiseProblem{.op = ElementwiseOp::kScale,
                                              .dtype = x.dtype,
                                              .out_dtype = x.dtype,
                                              .shape = x.shape,
                                              .x_strides = RowMajorStrides(x.shape, x.row_stride)};
  converted.step.scalars = ScalarsOf(factor, 0, IsInteger(x.dtype));
  converted.step.inputs = {x.tensor};
  return converted;
}

absl::StatusOr<ConvertedStep> ConvertAdd(const Operand& x, const Operand& y) {
  RETURN_IF_ERROR(CheckTakes(x, "add", IsReal));
  RETURN_IF_ERROR(CheckSameType(y, x.dtype, x.field));
  Shape shape;
  const int rank = std::max(x.shape.rank, y.shape.rank);
  // The axis of an operand that meets axis i of the result, if it has one.
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
    const Strides own = RowMajorStrides(operand.shape, operand.row_stride);
    Strides strides{};
    for (int i = 0; i < rank; ++i) strides[i] = size_of(operand, i) == 1 ? 0 : own[axis_of(operand, i)];
    return strides;
  };
  ConvertedStep converted;
  ASSIGN_OR_RETURN(converted.output, DenseResult(x.field + ".shape", x.dtype, shape));
  converted.step.problem = ElementwiseProblem{.op = ElementwiseOp::kAdd,
                                              .dtype = x.dtype,
                                              .out_dtype = x.dtype,
                                              .shape = shape,
                                              .x_strides = strides_of(x),
                                              .y_strides = strides_of(y)};
  converted.step.inputs = {x.tensor, y.tensor};
  return converted;
}

}  // namespace warpline
