// The rules of gemm: see convert_step.h.
#include <algorithm>
#include <limits>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/field_error.h"
#include "kernels/status_macros.h"
#include "proto/rules/convert_step.h"
#include "proto/rules/known_fields.h"
#include "proto/rules/operand_checks.h"
#include "proto/rules/tensor_rules.h"
#include "proto/rules/views.h"

namespace warpline {
namespace {

absl::StatusOr<Precision> CheckPrecision(v1::Precision precision) {
  switch (precision) {
    case v1::PRECISION_UNSPECIFIED:
    case v1::PRECISION_IEEE:
      return Precision::kIeee;
    case v1::PRECISION_TF32:
      return Precision::kTf32;
    default:
      return UnknownNumber("precision", precision, "ieee (1), tf32 (2)");
  }
}

absl::StatusOr<Activation> CheckActivation(v1::Activation activation, DType dtype) {
  switch (activation) {
    case v1::ACTIVATION_UNSPECIFIED:
    case v1::ACTIVATION_NONE:
      return Activation::kNone;
    case v1::ACTIVATION_RELU:
    case v1::ACTIVATION_GELU:
      if (!IsFloat(dtype)) {
        return FieldError("activation", absl::StrCat("products of ", TypeName(dtype), " have none"));
      }
      return activation == v1::ACTIVATION_RELU ? Activation::kRelu : Activation::kGelu;
    default:
      return UnknownNumber("activation", activation, "none (1), relu (2), gelu (3)");
  }
}

absl::StatusOr<DType> CheckGemmOutDType(v1::DataType data_type, const GemmProblem& problem) {
  if (data_type == v1::DATA_TYPE_UNSPECIFIED) return problem.OutDType();
  ASSIGN_OR_RETURN(const DType out, CheckDataType("out_data_type", data_type));
  const bool half = problem.dtype == DType::kF16 || problem.dtype == DType::kBF16;
  if (out == problem.OutDType() || (half && out == DType::kF32) || out == problem.dtype) return out;
  const char* const other = half ? " or f32" : problem.dtype == DType::kI8 ? " or i8" : "";
  return FieldError("out_data_type",
                    absl::StrCat(TypeName(out), " is not what a product of ", TypeName(problem.dtype),
                                 " can give: ", TypeName(problem.OutDType()), other));
}

// Returns the size of batch axis `axis`, counted from the innermost; 1 for axes beyond the outermost.
std::int64_t BatchSize(const Shape& shape, int axis) {
  const int i = shape.rank - 3 - axis;
  return i < 0 ? 1 : shape[i];
}

// Appends the batch axes, outermost first, to `d`, which must not contain them yet.
absl::Status BroadcastBatches(const Operand& a, const Operand& b, Shape& d) {
  for (int axis = std::max(a.shape.rank, b.shape.rank) - 3; axis >= 0; --axis) {
    ASSIGN_OR_RETURN(const std::int64_t size,
                     BroadcastSize(b, b.shape.rank - 3 - axis, BatchSize(b.shape, axis),
                                   BatchSize(a.shape, axis), "batch"));
    d.Append(size);
  }
  return absl::OkStatus();
}

// Returns which matrices of the operands each matrix of d uses; c may be null.
GemmBatch BatchOf(const Shape& a, const Shape& b, const Shape* c, const Shape& d) {
  const int axes = d.rank - 2;
  // The number of matrices between neighbours along each axis, counted from the innermost. 0 if the operand
  // has only one matrix along that axis.
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

// If consecutive matrices of A use the same B, they are treated as one matrix with more rows.
void FoldBatch(GemmProblem& problem) {
  GemmBatch& batch = problem.batch;
  const int inner = batch.rank - 1;
  if (inner < 0 || problem.trans_a || batch.b[inner] != 0 || batch.a[inner] != 1) return;
  if (problem.has_c && batch.c[inner] != 1) return;
  const std::int64_t folded = batch.dims[inner];
  if (folded == 0) return;
  problem.m *= folded;
  batch = batch.Outer();
  // Strides of A and C now count the larger matrices. Their axes are dense or broadcast, so the division is
  // exact.
  for (int i = 0; i < batch.rank; ++i) {
    batch.a[i] /= folded;
    batch.c[i] /= folded;
  }
}

// If the columns of a matrix are the rows in memory, the stored matrix is its transpose.
void TakeLayout(const Operand& x, bool& transposed, std::int64_t& row_stride) {
  std::optional<std::int64_t> rows = RowStrideOf(x);
  if (!rows.has_value()) {
    transposed = !transposed;
    rows = RowStrideOf(Swapped(x));
  }
  row_stride = *rows;
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
  if (!IsFloat(dtype)) return FieldError(bias.field, absl::StrCat(TypeName(dtype), " products take no bias"));
  RETURN_IF_ERROR(CheckSameType(bias, out, "the result"));
  if (bias.shape == Shape{n}) return absl::OkStatus();
  return FieldError(bias.field + ".shape",
                    absl::StrCat(ToString(bias.shape), ", but the product has ", n, " columns"));
}

// Sets m, n and k, which must agree in both operands.
absl::Status TakeSizes(const Operand& a, const Operand& b, GemmProblem& problem) {
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
  return absl::OkStatus();
}

}  // namespace

bool ReadsC(DType dtype, double beta) {
  const bool in_f64 = dtype == DType::kF64 || dtype == DType::kC128 || IsInteger(dtype);
  return in_f64 ? beta != 0 : static_cast<float>(beta) != 0;
}

std::optional<bool> ReadsC(std::optional<DType> dtype, double beta) {
  if (dtype.has_value()) return ReadsC(*dtype, beta);
  const bool reads_c = ReadsC(DType::kF64, beta);
  if (reads_c != ReadsC(DType::kF32, beta)) return std::nullopt;
  return reads_c;
}

absl::Status CheckHasC(bool reads_c, bool has_c, double beta) {
  if (!reads_c || has_c) return absl::OkStatus();
  return FieldError("c", absl::StrCat("missing; it is required since beta is ", beta));
}

absl::StatusOr<ConvertedStep> ConvertGemm(const Operand& a, const Operand& b, const Operand* c,
                                          const Operand* bias, const GemmOptions& options) {
  RETURN_IF_ERROR(CheckTakes(a, "gemm", IsGemmInput));
  for (const Operand* operand : {&a, &b}) {
    if (operand->shape.rank >= 2) continue;
    return FieldError(operand->field + ".shape",
                      absl::StrCat("rank ", operand->shape.rank, "; at least 2 is needed"));
  }
  RETURN_IF_ERROR(CheckSameType(b, a.dtype, a.field));
  const bool integers = IsInteger(a.dtype);
  GemmProblem problem{.dtype = a.dtype};
  problem.trans_a = options.trans_a;
  problem.trans_b = options.trans_b;
  ASSIGN_OR_RETURN(problem.out_dtype, CheckGemmOutDType(options.out_data_type, problem));
  ASSIGN_OR_RETURN(problem.activation, CheckActivation(options.activation, a.dtype));
  ASSIGN_OR_RETURN(const Precision precision, CheckPrecision(options.precision));
  // The precision has no effect on other types. Without it, they need only one graph instead of one per
  // precision.
  if (problem.dtype == DType::kF32) problem.precision = precision;

  RETURN_IF_ERROR(TakeSizes(a, b, problem));
  Shape d;
  RETURN_IF_ERROR(BroadcastBatches(a, b, d));
  d.Append(problem.m);
  d.Append(problem.n);
  ConvertedStep converted;
  ASSIGN_OR_RETURN(converted.output, DenseResult(a.field + ".shape", problem.OutDType(), d));

  if (integers) {
    constexpr std::int64_t kMin = std::numeric_limits<std::int32_t>::min();
    constexpr std::int64_t kGreatest = std::numeric_limits<std::int32_t>::max();
    RETURN_IF_ERROR(CheckInteger("alpha", options.alpha.value, kMin, kGreatest));
    RETURN_IF_ERROR(CheckInteger("beta", options.beta.value, kMin, kGreatest));
  }
  Step& step = converted.step;
  converted.scalars = {{options.alpha, options.beta, integers}};
  TakeLayout(a, problem.trans_a, problem.lda);
  TakeLayout(b, problem.trans_b, problem.ldb);
  Read(a, step);
  Read(b, step);
  problem.has_c = ReadsC(a.dtype, options.beta.value);
  if (problem.has_c) {
    RETURN_IF_ERROR(CheckC(*c, problem.OutDType(), d));
    problem.ldc = *RowStrideOf(*c);
    Read(*c, step);
  }
  problem.has_bias = bias != nullptr;
  if (problem.has_bias) {
    RETURN_IF_ERROR(CheckBias(*bias, a.dtype, problem.OutDType(), problem.n));
    Read(*bias, step);
  }
  if (c != nullptr && !problem.has_c) RETURN_IF_ERROR(CheckC(*c, problem.OutDType(), d));
  problem.batch = BatchOf(a.shape, b.shape, problem.has_c ? &c->shape : nullptr, d);
  FoldBatch(problem);
  step.problem = problem;
  return converted;
}

}  // namespace warpline
