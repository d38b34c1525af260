#include "proto/rules/step_kinds.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/field_error.h"
#include "kernels/status_macros.h"
#include "proto/rules/index_steps.h"
#include "proto/rules/known_fields.h"
#include "proto/rules/order_steps.h"
#include "proto/rules/reduce_steps.h"
#include "proto/rules/repeat_steps.h"
#include "proto/rules/step_options.h"
#include "proto/rules/step_table.h"

namespace warpline {
namespace {

MaybeStep Known(absl::StatusOr<ConvertedStep> converted) {
  RETURN_IF_ERROR(converted.status());
  return std::optional<ConvertedStep>(*std::move(converted));
}

MaybeStep ConvertGemmStep(const v1::GemmStep& gemm, const OperandList& inputs, ScalarReader scalars) {
  ASSIGN_OR_RETURN(const GemmOptions options, GemmOptionsOf(gemm, scalars));
  const std::size_t bias = gemm.has_bias() ? 1 : 0, count = inputs.size();
  if (count < 2 + bias || count > 3 + bias) {
    return FieldError("inputs", absl::StrCat("has ", count, count == 1 ? " name" : " names",
                                             "; the product reads ", 2 + bias, ", or ", 3 + bias, " with c"));
  }
  const bool has_c = count == 3 + bias;
  const Operand* const a = inputs[0];
  const std::optional<bool> reads_c =
      ReadsC(a == nullptr ? std::nullopt : std::optional<DType>(a->dtype), options.beta.value);
  RETURN_IF_ERROR(CheckHasC(reads_c.value_or(false), has_c, options.beta.value));
  const Operand* const c = has_c ? inputs[2] : nullptr;
  const Operand* const row = bias > 0 ? inputs.back() : nullptr;
  const bool misses_c = has_c && c == nullptr && reads_c.value_or(true);
  if (a == nullptr || inputs[1] == nullptr || misses_c || (bias > 0 && row == nullptr)) return std::nullopt;
  return Known(ConvertGemm(*a, *inputs[1], c, row, options));
}

bool IsOf(const v1::Step& step, StepKind kind) {
  const StepRow* const row = RowOf(step);
  return row != nullptr && row->kind == kind;
}

// The names of all operations, for errors.
std::string OperationNames() {
  return absl::StrJoin(StepTable(), ", ", [](std::string* to, const StepRow& row) { to->append(row.name); });
}

absl::StatusOr<StepResults> Alone(absl::StatusOr<Operand> result) {
  RETURN_IF_ERROR(result.status());
  return StepResults{*std::move(result)};
}

}  // namespace

absl::Status CheckCount(std::size_t given, std::size_t count) {
  if (given == count) return absl::OkStatus();
  return FieldError("inputs", absl::StrCat("has ", given, given == 1 ? " name" : " names",
                                           "; the operation reads ", count));
}

bool AllKnown(const OperandList& inputs) {
  return std::find(inputs.begin(), inputs.end(), nullptr) == inputs.end();
}

bool IsView(const v1::Step& step) { return IsOf(step, StepKind::kView); }

bool IsElementwise(const v1::Step& step) { return IsOf(step, StepKind::kElementwise); }

MaybeStep ConvertStep(const v1::Step& step, const OperandList& inputs, ScalarReader scalars) {
  const auto unary = [&](auto convert) -> MaybeStep {
    RETURN_IF_ERROR(CheckCount(inputs.size(), 1));
    if (inputs[0] == nullptr) return std::nullopt;
    return Known(convert(*inputs[0]));
  };
  switch (step.operation_case()) {
    case v1::Step::kCast:
      return unary([&](const Operand& x) { return ConvertCast(x, step.cast().data_type()); });
    case v1::Step::kScale:
      return unary([&](const Operand& x) -> absl::StatusOr<ConvertedStep> {
        ASSIGN_OR_RETURN(const Scalar factor, FactorOf(step.scale(), scalars));
        return ConvertScale(x, factor);
      });
    case v1::Step::kGemm:
      return ConvertGemmStep(step.gemm(), inputs, scalars);
    case v1::Step::kAdd:
      RETURN_IF_ERROR(CheckCount(inputs.size(), 2));
      if (inputs[0] == nullptr || inputs[1] == nullptr) return std::nullopt;
      return Known(ConvertAdd(*inputs[0], *inputs[1]));
    case v1::Step::kMap:
      RETURN_IF_ERROR(CheckMapCounts(inputs.size(), step.map()));
      if (!AllKnown(inputs)) return std::nullopt;
      return Known(ConvertMap(inputs, step.map(), scalars));
    default:
      break;
  }
  return FieldError("operation", absl::StrCat("missing; it must be one of ", OperationNames()));
}

bool EmitsSteps(const v1::Step& step) {
  return IsOf(step, StepKind::kSteps) || IsOf(step, StepKind::kCopies);
}

std::size_t OperandsOf(const v1::Step& step) {
  const bool has_optional = step.has_pad() ? step.inputs_size() > 1 : step.searchsorted().has_sorter();
  return static_cast<std::size_t>(RowOf(step)->operands) + (has_optional ? 1 : 0);
}

absl::StatusOr<StepResults> CheckEmitting(const v1::Step& step, const OperandList& inputs, EmitStep emit) {
  const std::string& variant = step.variant();
  const Operand& x = *inputs[0];
  const Operand* const second = inputs.size() > 1 ? inputs[1] : nullptr;
  if (IsOf(step, StepKind::kCopies) && !variant.empty() && variant != "auto") {
    return FieldError("variant", absl::StrCat("\"", variant.substr(0, kMaxNameLength),
                                              "\"; the operation is made of copies, and has none"));
  }
  switch (step.operation_case()) {
    case v1::Step::kTake:
      return Alone(TakeSteps(x, *inputs[1], step.take().axis(), variant, emit));
    case v1::Step::kTakeAlongAxis:
      return Alone(TakeAlongAxisSteps(x, *inputs[1], step.take_along_axis().axis(), variant, emit));
    case v1::Step::kPutAlongAxis:
      return Alone(PutAlongAxisSteps(x, *inputs[1], *inputs[2], step.put_along_axis().axis(), variant, emit));
    case v1::Step::kScan:
      return Alone(ScanSteps(x, step.scan(), variant, emit));
    case v1::Step::kSort:
      return SortSteps(x, step.sort(), variant, emit);
    case v1::Step::kArgsort:
      return Alone(ArgsortSteps(x, step.argsort(), variant, emit));
    case v1::Step::kTopk:
      return TopkSteps(x, step.topk(), variant, emit);
    case v1::Step::kCompress:
      return Alone(CompressSteps(x, *inputs[1], variant, emit));
    case v1::Step::kRoll:
      return Alone(RollSteps(x, step.roll(), emit));
    case v1::Step::kTile:
      return Alone(TileSteps(x, step.tile(), emit));
    case v1::Step::kRepeat:
      return Alone(RepeatSteps(x, step.repeat(), emit));
    case v1::Step::kPad:
      return Alone(PadSteps(x, second, step.pad(), emit));
    case v1::Step::kSetSlice:
      return Alone(SetSliceSteps(x, *inputs[1], step.set_slice(), emit));
    default:
      return Alone(SearchsortedSteps(x, *inputs[1], inputs.size() > 2 ? inputs[2] : nullptr,
                                     step.searchsorted(), variant, emit));
  }
}

}  // namespace warpline
