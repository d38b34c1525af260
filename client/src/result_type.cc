#include "client/src/result_type.h"

#include <cstddef>
#include <string>
#include <utility>
#include <variant>

#include "absl/types/span.h"
#include "kernels/status_macros.h"
#include "proto/rules/convert_step.h"
#include "proto/rules/program_rules.h"
#include "proto/rules/reduce_steps.h"
#include "proto/rules/step_options.h"
#include "proto/rules/tensor_rules.h"
#include "proto/rules/views.h"

namespace warpline::client {
namespace {

// An operand as the rules take it; nothing if its type is unknown.
using MaybeOperand = std::optional<warpline::Operand>;

// `field` is the operand's name in the request.
absl::StatusOr<MaybeOperand> Read(const std::string& field, const Operand& operand) {
  const bool is_resident = !operand.resident.empty();
  if (is_resident && operand.shape.rank == 0) return std::nullopt;
  const absl::Span<const std::int64_t> sizes(operand.shape.dims.data(),
                                             static_cast<std::size_t>(operand.shape.rank));
  ASSIGN_OR_RETURN(const Layout layout,
                   CheckLayout(field, operand.dtype, sizes, is_resident ? 0 : operand.row_stride));
  return RowsOperand(field, -1, layout.spec.dtype, layout.spec.shape, layout.row_stride);
}

v1::DataType NumberOf(const std::optional<DType>& dtype) {
  return dtype ? warpline::ToProto(*dtype) : v1::DATA_TYPE_UNSPECIFIED;
}

absl::StatusOr<ResultTypes> UnknownResult(const std::string& variant) {
  RETURN_IF_ERROR(CheckVariantName(variant));
  return ResultTypes(1);
}

absl::StatusOr<ResultTypes> ResultOf(const absl::StatusOr<ConvertedStep>& converted,
                                     const std::string& variant) {
  RETURN_IF_ERROR(converted.status());
  RETURN_IF_ERROR(CheckVariantName(variant));
  return ResultTypes{converted->output};
}

}  // namespace

absl::StatusOr<ResultTypes> ResultTypesOf(const TransposeArgs& args) {
  ASSIGN_OR_RETURN(const MaybeOperand x, Read("x", args.x));
  if (!x) return UnknownResult(args.variant);
  return ResultOf(ConvertTranspose(*x, {.perm = {args.perm.begin(), args.perm.end()}}), args.variant);
}

absl::StatusOr<ResultTypes> ResultTypesOf(const ReduceArgs& args) {
  ASSIGN_OR_RETURN(const MaybeOperand x, Read("x", args.x));
  if (!x) return UnknownResult(args.variant);
  const ReduceOptions options{.op = args.op,
                              .axes = {args.axes.begin(), args.axes.end()},
                              .keepdims = args.keepdims,
                              .out_data_type = NumberOf(args.out_data_type),
                              .ddof = args.ddof};
  RETURN_IF_ERROR(CheckVariantName(args.variant));
  const auto emit = [](const ConvertedStep& step, const std::string&,
                       int) -> absl::StatusOr<warpline::Operand> {
    return DenseOperand("x", -1, step.output);
  };
  ASSIGN_OR_RETURN(const warpline::Operand y, ReduceSteps(*x, options, args.variant, emit));
  return ResultTypes{
      TensorSpec{y.dtype, y.shape, static_cast<std::size_t>(y.shape.Count()) * SizeOf(y.dtype)}};
}

absl::StatusOr<ResultTypes> ResultTypesOf(const GemmArgs& args) {
  GemmOptions options{.trans_a = args.trans_a,
                      .trans_b = args.trans_b,
                      .precision = args.precision,
                      .activation = args.activation,
                      .out_data_type = NumberOf(args.out_data_type)};
  if (args.alpha) options.alpha.value = *args.alpha;
  if (args.beta) options.beta.value = *args.beta;
  ASSIGN_OR_RETURN(const MaybeOperand a, Read("a", args.a));
  ASSIGN_OR_RETURN(const MaybeOperand b, Read("b", args.b));
  // Nothing if it depends on the type of a, which is unknown.
  const std::optional<bool> reads_c = ReadsC(a ? std::optional(a->dtype) : std::nullopt, options.beta.value);
  RETURN_IF_ERROR(CheckHasC(reads_c.value_or(false), args.c.has_value(), options.beta.value));
  MaybeOperand c, bias;
  if (args.c) {
    ASSIGN_OR_RETURN(c, Read("c", *args.c));
  }
  if (args.bias) {
    ASSIGN_OR_RETURN(bias, Read("bias", *args.bias));
  }
  const bool misses_c = args.c && !c && reads_c.value_or(true), misses_bias = args.bias && !bias;
  if (!a || !b || misses_c || misses_bias) return UnknownResult(args.variant);
  return ResultOf(ConvertGemm(*a, *b, c ? &*c : nullptr, bias ? &*bias : nullptr, options), args.variant);
}

absl::StatusOr<ResultTypes> ResultTypesOf(const OperationArgs& args) {
  return std::visit([](const auto& operation) { return ResultTypesOf(operation); }, args);
}

absl::StatusOr<ResultTypes> ResultTypesOf(const RunArgs& args) {
  ProgramRules rules(args.program, /*foreign_steps=*/true);
  RETURN_IF_ERROR(CheckInputCount(args.inputs.size()));
  for (const auto& input : args.inputs) {
    RETURN_IF_ERROR(
        rules.AddInput(input.first, [&](const std::string& field) { return Read(field, input.second); }));
  }
  const auto ignore = [](const ConvertedStep&, const std::string&) {};
  RETURN_IF_ERROR(rules.CheckSteps(ReadValue, ignore));
  ResultTypes types;
  RETURN_IF_ERROR(rules.CheckOutputs(
      ignore, [&](const std::string& field, const std::string&, const MaybeOperand& result) -> absl::Status {
        types.emplace_back();
        if (!result || result->count_tensor >= 0) return absl::OkStatus();
        ASSIGN_OR_RETURN(const std::size_t bytes, StorageBytes(field, result->dtype, result->shape, 0));
        types.back() = ArrayType{result->dtype, result->shape, bytes};
        return absl::OkStatus();
      }));
  RETURN_IF_ERROR(rules.CheckAllUsed());
  return types;
}

}  // namespace warpline::client
