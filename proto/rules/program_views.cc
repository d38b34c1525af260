// The part of ProgramRules that decides what is a view and what must be copied.
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/field_error.h"
#include "kernels/status_macros.h"
#include "proto/rules/program_rules.h"
#include "proto/rules/step_kinds.h"
#include "proto/rules/views.h"

namespace warpline {

// A copy is part of the step that is the view.
absl::StatusOr<Operand> ProgramRules::CopyFor(Value& value, int reader, AddStep add) {
  if (!value.copy.has_value()) {
    ASSIGN_OR_RETURN(value.copy, Emit(CopyOf(*value.operand), "", value.step < 0 ? reader : value.step, add));
  }
  return *value.copy;
}

absl::StatusOr<std::optional<Operand>> ProgramRules::OperandFor(Value& value, Takes takes, bool elementwise,
                                                                int reader, AddStep add) {
  if (!value.operand.has_value()) return std::nullopt;
  const Operand& x = *value.operand;
  bool fits = !elementwise || !ReadsAcross(x);
  if (takes == Takes::kMatrices) fits = IsMatrices(x);
  if (takes == Takes::kRows) fits = RowStrideOf(x).has_value();
  if (fits) return x;
  const Operand once = WithoutRepeats(x);
  if (!elementwise || once.shape == x.shape) {
    ASSIGN_OR_RETURN(Operand copy, CopyFor(value, reader, add));
    return copy;
  }
  if (!value.turned.has_value()) {
    ASSIGN_OR_RETURN(const Operand copy, Emit(CopyOf(once), "", value.step < 0 ? reader : value.step, add));
    value.turned = WithRepeats(copy, x);
  }
  return value.turned;
}

absl::StatusOr<std::optional<Operand>> ProgramRules::CheckView(const v1::Step& step,
                                                               const OperandList& inputs, Value& of,
                                                               int index, AddStep add) {
  RETURN_IF_ERROR(CheckCount(inputs.size(), 1));
  const bool has_variant = !step.variant().empty() && step.variant() != "auto";
  if (has_variant && !step.has_transpose()) {
    return FieldError("variant",
                      absl::StrCat("\"", step.variant().substr(0, kMaxNameLength), "\"; a view has none"));
  }
  if (inputs[0] == nullptr) return std::nullopt;
  const Operand& x = *inputs[0];
  switch (step.operation_case()) {
    case v1::Step::kTranspose: {
      const TransposeOptions options = TransposeOptionsOf(step.transpose());
      ASSIGN_OR_RETURN(const Perm perm, CheckPerm(x, options.perm));
      if (!has_variant) return PermuteView(x, perm);
      Operand rows = x;
      if (!RowStrideOf(x).has_value()) {
        ASSIGN_OR_RETURN(rows, CopyFor(of, index, add));
        rows.field = x.field;
      }
      ASSIGN_OR_RETURN(ConvertedStep converted, ConvertTranspose(rows, options));
      return Emit(std::move(converted), step.variant(), index, add);
    }
    case v1::Step::kReshape: {
      ASSIGN_OR_RETURN(const Shape shape, CheckReshape(x, step.reshape()));
      std::optional<Operand> view = ReshapeView(x, shape);
      if (view.has_value()) return view;
      ASSIGN_OR_RETURN(const Operand copy, CopyFor(of, index, add));
      return ReshapeView(copy, shape);
    }
    case v1::Step::kSlice:
      return SliceView(x, step.slice());
    case v1::Step::kBroadcastTo:
      return BroadcastView(x, step.broadcast_to());
    default:
      return DiagonalView(x, step.diagonal());
  }
}

absl::StatusOr<std::optional<Operand>> ProgramRules::CheckConcat(const v1::Step& step,
                                                                 const OperandList& inputs, int index,
                                                                 AddStep add) {
  if (inputs.empty() || inputs.size() > kMaxInputs) {
    return FieldError("inputs",
                      absl::StrCat("has ", inputs.size(), " names; concat reads 1 to ", kMaxInputs));
  }
  if (!AllKnown(inputs)) return std::nullopt;
  ASSIGN_OR_RETURN(const Joined joined, JoinedOf(inputs, step.concat().axis()));
  const Strides strides = RowMajorStrides(joined.whole.shape);
  std::optional<Operand> result;
  std::int64_t at = 0;  // position along the axis
  for (const Operand* const x : inputs) {
    // The first kernel makes the tensor, even if its input has no elements.
    const std::int64_t size = x->shape[joined.axis];
    if (!result.has_value() || x->shape.Count() > 0) {
      ASSIGN_OR_RETURN(result, Emit(CopyInto(*x, joined.whole, strides, at * strides[joined.axis]),
                                    step.variant(), index, add, result.has_value() ? result->tensor : -1));
    }
    at += size;
  }
  return result;
}

}  // namespace warpline
