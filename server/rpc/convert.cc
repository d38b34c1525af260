#include "server/rpc/convert.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "kernels/status_macros.h"
#include "server/engine/errors.h"

namespace warpline {
namespace {

// Long enough for any name in the tables; names are repeated in errors, logs and cache keys.
constexpr std::size_t kVariantNameMax = 64;

constexpr std::array kGemmDTypes = {DType::kF16, DType::kBF16, DType::kF32, DType::kF64};
constexpr std::array kReduceDTypes = {DType::kI32, DType::kF16, DType::kBF16, DType::kF32, DType::kF64};

absl::StatusOr<std::string> CheckVariantName(const std::string& variant) {
  if (variant.size() > kVariantNameMax) {
    return FieldError("variant", absl::StrCat("a name of ", variant.size(), " bytes is above the limit of ",
                                              kVariantNameMax));
  }
  return variant == "auto" ? "" : variant;
}

Conversion OneStep(Step step, std::span<const CheckedTensor> inputs, TensorSpec output) {
  Conversion conversion;
  Program& program = conversion.program;
  for (const CheckedTensor& input : inputs) {
    step.inputs.push_back(static_cast<int>(program.tensors.size()));
    program.tensors.push_back(input.spec);
    conversion.payloads.push_back(input.payload);
  }
  program.num_inputs = static_cast<int>(inputs.size());
  step.output = program.num_inputs;
  program.outputs = {step.output};
  program.tensors.push_back(output);
  program.steps.push_back(std::move(step));
  return conversion;
}

absl::StatusOr<std::array<std::int8_t, kMaxRank>> CheckPerm(const v1::TransposeRequest& request, int rank) {
  std::array<std::int8_t, kMaxRank> perm{};
  if (request.perm().empty()) {
    for (int i = 0; i < rank; ++i) perm[i] = static_cast<std::int8_t>(i);
    if (rank >= 2) std::swap(perm[rank - 2], perm[rank - 1]);
    return perm;
  }
  if (request.perm_size() != rank) {
    return FieldError("perm", absl::StrCat("has ", request.perm_size(), " entries; x has rank ", rank));
  }
  std::uint32_t seen = 0;
  for (int i = 0; i < rank; ++i) {
    const int axis = request.perm(i);
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

// b or c against a: what all operands must have in common.
absl::Status CheckSameKind(std::string_view field, const TensorSpec& tensor, const TensorSpec& a) {
  const std::string name(field);
  if (tensor.dtype != a.dtype) {
    return FieldError(name + ".data_type", absl::StrCat(std::string(Name(tensor.dtype)), ", but a has ",
                                                        std::string(Name(a.dtype))));
  }
  const int rank = a.shape.rank;
  if (tensor.shape.rank != rank) {
    return FieldError(name + ".shape", absl::StrCat("rank ", tensor.shape.rank, ", but a has rank ", rank));
  }
  for (int i = 0; i < rank - 2; ++i) {
    if (tensor.shape[i] == a.shape[i]) continue;
    return FieldError(name + ".shape", absl::StrCat("batch axis ", i, " has size ", tensor.shape[i],
                                                    ", but that of a has ", a.shape[i]));
  }
  return absl::OkStatus();
}

// Fills in the sizes of the problem and returns the shape of the result.
absl::StatusOr<Shape> CheckGemmShapes(const Shape& a, const Shape& b, GemmProblem& problem) {
  const int rows = a.rank - 2;  // axis of the rows, in every operand
  const int columns = a.rank - 1;
  problem.m = a[problem.trans_a ? columns : rows];
  problem.k = a[problem.trans_a ? rows : columns];
  problem.n = b[problem.trans_b ? rows : columns];
  const std::int64_t b_k = b[problem.trans_b ? columns : rows];
  if (b_k != problem.k) {
    return FieldError(
        "b.shape", absl::StrCat("inner size ", b_k, " of ", ToString(b), problem.trans_b ? " transposed" : "",
                                ", but that of a, ", ToString(a), problem.trans_a ? " transposed" : "",
                                ", is ", problem.k));
  }
  Shape d = a;
  d[rows] = problem.m;
  d[columns] = problem.n;
  problem.batch = 1;
  for (int i = 0; i < rows; ++i) problem.batch *= a[i];
  return d;
}

absl::StatusOr<ReduceOp> CheckReduceOp(v1::ReduceOp op) {
  switch (op) {
    case v1::REDUCE_OP_SUM:
      return ReduceOp::kSum;
    case v1::REDUCE_OP_MIN:
      return ReduceOp::kMin;
    case v1::REDUCE_OP_MAX:
      return ReduceOp::kMax;
    case v1::REDUCE_OP_MEAN:
      return ReduceOp::kMean;
    case v1::REDUCE_OP_ARGMAX:
      return ReduceOp::kArgmax;
    default:
      return FieldError("op", absl::StrCat("number ", static_cast<int>(op),
                                           " is none of sum (1), min (3), max (4), mean (5), argmax (7)"));
  }
}

absl::StatusOr<std::uint32_t> CheckAxes(const v1::ReduceRequest& request, int rank) {
  if (request.axes().empty()) return (1u << rank) - 1;
  std::uint32_t mask = 0;
  for (int axis : request.axes()) {
    if (axis < -rank || axis >= rank) {
      return FieldError("axes", absl::StrCat("axis ", axis, " is outside of [", -rank, ", ", rank, ")"));
    }
    const std::uint32_t bit = 1u << (axis < 0 ? axis + rank : axis);
    if (mask & bit) return FieldError("axes", absl::StrCat("axis ", axis, " is named twice"));
    mask |= bit;
  }
  return mask;
}

// Too large for a float becomes infinity, as in any rounding.
GemmScalars ScalarsOf(const v1::GemmRequest& request) {
  const double alpha = request.has_alpha() ? request.alpha() : 1;
  const double beta = request.has_beta() ? request.beta() : 0;
  return {.alpha_f32 = static_cast<float>(alpha),
          .beta_f32 = static_cast<float>(beta),
          .alpha_f64 = alpha,
          .beta_f64 = beta};
}

// The same in every response.
constexpr int kTensorField = v1::TransposeResponse::kYFieldNumber;
constexpr int kExecutionField = v1::TransposeResponse::kExecutionFieldNumber;
static_assert(kTensorField == v1::GemmResponse::kDFieldNumber);
static_assert(kTensorField == v1::ReduceResponse::kYFieldNumber);
static_assert(kExecutionField == v1::GemmResponse::kExecutionFieldNumber);
static_assert(kExecutionField == v1::ReduceResponse::kExecutionFieldNumber);

// The tag and the length of a field whose content comes next.
void AppendLengthDelimited(std::string& to, int field, std::size_t length) {
  constexpr std::uint32_t kLengthDelimited = 2;
  google::protobuf::io::StringOutputStream stream(&to);
  google::protobuf::io::CodedOutputStream out(&stream);
  out.WriteTag(static_cast<std::uint32_t>(field) << 3 | kLengthDelimited);
  out.WriteVarint64(length);
}

}  // namespace

absl::StatusOr<Conversion> FromProto(const v1::TransposeRequest& request,
                                     std::span<const PayloadRange> payloads, const Limits& limits) {
  TensorReader reader(payloads, limits);
  ASSIGN_OR_RETURN(const CheckedTensor x,
                   reader.Read("x", request.has_x() ? &request.x() : nullptr, Rows::kDense));

  TransposeProblem problem{.dtype = x.spec.dtype, .shape = x.spec.shape};
  ASSIGN_OR_RETURN(problem.perm, CheckPerm(request, x.spec.shape.rank));
  ASSIGN_OR_RETURN(std::string variant, CheckVariantName(request.variant()));
  ASSIGN_OR_RETURN(TensorSpec y, CheckResult("x.shape", x.spec.dtype, problem.OutputShape(), limits));
  Step step;
  step.problem = problem;
  step.variant = std::move(variant);
  return OneStep(std::move(step), {&x, 1}, y);
}

absl::StatusOr<Conversion> FromProto(const v1::ReduceRequest& request, std::span<const PayloadRange> payloads,
                                     const Limits& limits) {
  TensorReader reader(payloads, limits);
  ASSIGN_OR_RETURN(const CheckedTensor x,
                   reader.Read("x", request.has_x() ? &request.x() : nullptr, Rows::kDense));
  RETURN_IF_ERROR(CheckSupported("x", x, "reduce", kReduceDTypes));

  const int rank = x.spec.shape.rank;
  ReduceProblem problem{.dtype = x.spec.dtype, .shape = x.spec.shape};
  ASSIGN_OR_RETURN(problem.op, CheckReduceOp(request.op()));
  ASSIGN_OR_RETURN(problem.axes_mask, CheckAxes(request, rank));
  const int reduced = std::popcount(problem.axes_mask);
  if (problem.op == ReduceOp::kArgmax && reduced > 1 && reduced < rank) {
    return FieldError("axes", absl::StrCat("argmax over ", reduced, " of ", rank,
                                           " axes; it goes over one axis, or over all of them"));
  }
  const bool has_identity = problem.op == ReduceOp::kSum || problem.op == ReduceOp::kMean;
  if (!has_identity && problem.ReducedCount() == 0 && problem.OutputShape(false).Count() > 0) {
    return FieldError("x.shape", absl::StrCat(std::string(Name(problem.op)), " over no elements of ",
                                              ToString(x.spec.shape), " has no value"));
  }
  ASSIGN_OR_RETURN(std::string variant, CheckVariantName(request.variant()));
  ASSIGN_OR_RETURN(TensorSpec y, CheckResult("x.shape", OutputDType(problem.op, x.spec.dtype),
                                             problem.OutputShape(request.keepdims()), limits));
  Step step;
  step.problem = problem;
  step.variant = std::move(variant);
  return OneStep(std::move(step), {&x, 1}, y);
}

absl::StatusOr<Conversion> FromProto(const v1::GemmRequest& request, std::span<const PayloadRange> payloads,
                                     const Limits& limits) {
  TensorReader reader(payloads, limits);
  std::vector<CheckedTensor> operands(2);
  operands.reserve(3);  // a and b below refer into it
  CheckedTensor& a = operands[0];
  CheckedTensor& b = operands[1];
  ASSIGN_OR_RETURN(a, reader.Read("a", request.has_a() ? &request.a() : nullptr, Rows::kMayBePadded));
  RETURN_IF_ERROR(CheckSupported("a", a, "gemm", kGemmDTypes));
  if (a.spec.shape.rank < 2) {
    return FieldError("a.shape", absl::StrCat("rank ", a.spec.shape.rank, " is below the least, 2"));
  }
  ASSIGN_OR_RETURN(b, reader.Read("b", request.has_b() ? &request.b() : nullptr, Rows::kMayBePadded));
  RETURN_IF_ERROR(CheckSameKind("b", b.spec, a.spec));

  GemmProblem problem{.dtype = a.spec.dtype, .trans_a = request.trans_a(), .trans_b = request.trans_b()};
  ASSIGN_OR_RETURN(const Shape d_shape, CheckGemmShapes(a.spec.shape, b.spec.shape, problem));
  problem.lda = a.row_stride;
  problem.ldb = b.row_stride;
  ASSIGN_OR_RETURN(const Precision precision, CheckPrecision(request.precision()));
  // Of no consequence to other types, which then need not have a graph for each precision.
  if (problem.dtype == DType::kF32) problem.precision = precision;

  const GemmScalars scalars = ScalarsOf(request);
  // Decided on the value that kernels compute with: all of them then agree on whether c is read.
  problem.has_c = problem.dtype == DType::kF64 ? scalars.beta_f64 != 0 : scalars.beta_f32 != 0;
  if (problem.has_c && !request.has_c()) {
    return FieldError("c", absl::StrCat("missing; it is required since beta is ", scalars.beta_f64));
  }
  if (request.has_c()) {
    ASSIGN_OR_RETURN(CheckedTensor c, reader.Read("c", &request.c(), Rows::kMayBePadded));
    RETURN_IF_ERROR(CheckSameKind("c", c.spec, a.spec));
    if (c.spec.shape != d_shape) {
      return FieldError("c.shape",
                        absl::StrCat(ToString(c.spec.shape), ", but the product is ", ToString(d_shape)));
    }
    if (problem.has_c) {
      problem.ldc = c.row_stride;
      operands.push_back(c);
    }
  }
  ASSIGN_OR_RETURN(std::string variant, CheckVariantName(request.variant()));
  ASSIGN_OR_RETURN(TensorSpec d, CheckResult("a.shape", a.spec.dtype, d_shape, limits));
  Step step;
  step.problem = problem;
  step.variant = std::move(variant);
  step.scalars = scalars;
  return OneStep(std::move(step), operands, d);
}

std::string ResponseHeader(const TensorSpec& output, const v1::Execution& execution) {
  v1::Tensor tensor;  // all of it but the elements
  tensor.set_data_type(ToProto(output.dtype));
  for (int i = 0; i < output.shape.rank; ++i) tensor.add_shape(output.shape[i]);
  std::string elements;  // their tag and length
  AppendLengthDelimited(elements, v1::Tensor::kInlineFieldNumber, output.bytes);

  std::string header;
  AppendLengthDelimited(header, kExecutionField, execution.ByteSizeLong());
  execution.AppendToString(&header);
  AppendLengthDelimited(header, kTensorField, tensor.ByteSizeLong() + elements.size() + output.bytes);
  tensor.AppendToString(&header);
  return header + elements;
}

}  // namespace warpline
