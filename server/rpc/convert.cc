#include "server/rpc/convert.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/wire_format_lite.h"
#include "kernels/status_macros.h"
#include "server/engine/errors.h"
#include "server/rpc/convert_tensor.h"

namespace warpline {
namespace {

using google::protobuf::internal::WireFormatLite;

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

// `field` is the operand to blame should the result be too large.
absl::StatusOr<TensorSpec> CheckResult(std::string_view field, DType dtype, const Shape& shape,
                                       const Limits& limits) {
  ASSIGN_OR_RETURN(const std::size_t bytes, StorageBytes(field, dtype, shape, RowSize(shape)));
  if (bytes > static_cast<std::size_t>(limits.max_inline_bytes)) {
    return FieldError(field, absl::StrCat("the result, ", std::string(Name(dtype)), " ", ToString(shape), ", takes ",
                                          bytes, " bytes; the limit is ", limits.max_inline_bytes));
  }
  return TensorSpec{dtype, shape, bytes};
}

// The tensors of a request, and their bytes together as far as they have been read.
class TensorReader {
 public:
  TensorReader(std::span<const PayloadRange> payloads, const Limits& limits)
      : payloads_(payloads), limits_(limits) {}

  absl::StatusOr<CheckedTensor> Read(std::string_view field, const v1::Tensor* tensor) {
    ASSIGN_OR_RETURN(CheckedTensor checked, CheckTensor(field, tensor, payloads_));
    bytes_ += checked.spec.bytes;  // of bytes received: no overflow
    if (bytes_ > static_cast<std::size_t>(limits_.max_inline_bytes)) {
      return FieldError(absl::StrCat(std::string(field), ".inline"),
                        absl::StrCat("the tensors up to this one take ", bytes_, " bytes; the limit is ",
                                     limits_.max_inline_bytes));
    }
    return checked;
  }

 private:
  const std::span<const PayloadRange> payloads_;
  const Limits& limits_;
  std::size_t bytes_ = 0;
};

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
  program.tensors.push_back(std::move(output));
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

}  // namespace

absl::StatusOr<Conversion> FromProto(const v1::TransposeRequest& request, std::span<const PayloadRange> payloads,
                                     const Limits& limits) {
  TensorReader reader(payloads, limits);
  ASSIGN_OR_RETURN(const CheckedTensor x, reader.Read("x", request.has_x() ? &request.x() : nullptr));
  RETURN_IF_ERROR(CheckDense("x", x));

  TransposeProblem problem{.dtype = x.spec.dtype, .shape = x.spec.shape};
  ASSIGN_OR_RETURN(problem.perm, CheckPerm(request, x.spec.shape.rank));
  ASSIGN_OR_RETURN(std::string variant, CheckVariantName(request.variant()));
  ASSIGN_OR_RETURN(TensorSpec y, CheckResult("x.shape", x.spec.dtype, problem.OutputShape(), limits));
  Step step;
  step.problem = problem;
  step.variant = std::move(variant);
  return OneStep(std::move(step), {&x, 1}, std::move(y));
}

absl::StatusOr<Conversion> FromProto(const v1::ReduceRequest& request, std::span<const PayloadRange> payloads,
                                     const Limits& limits) {
  TensorReader reader(payloads, limits);
  ASSIGN_OR_RETURN(const CheckedTensor x, reader.Read("x", request.has_x() ? &request.x() : nullptr));
  RETURN_IF_ERROR(CheckSupported("x", x, "reduce", kReduceDTypes));
  RETURN_IF_ERROR(CheckDense("x", x));

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
  return OneStep(std::move(step), {&x, 1}, std::move(y));
}
