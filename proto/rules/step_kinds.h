// The kinds of steps, and the rules of each kind.
#ifndef WARPLINE_PROTO_RULES_STEP_KINDS_H_
#define WARPLINE_PROTO_RULES_STEP_KINDS_H_

#include <cstddef>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/rules/convert_step.h"
#include "proto/rules/emit_step.h"

namespace warpline {

inline constexpr std::size_t kMaxNameLength = 64;

// Returns INVALID_ARGUMENT if an operation that reads `count` inputs is given another number.
absl::Status CheckCount(std::size_t given, std::size_t count);
// Returns whether the shapes and types of all inputs are known.
bool AllKnown(const OperandList& inputs);

// Returns whether the result of the step is a view of its input, if that is possible.
bool IsView(const v1::Step& step);
// Returns whether each element of the result depends on one position of the inputs.
bool IsElementwise(const v1::Step& step);
// Returns whether the step consists of other steps: see CheckEmitting.
bool EmitsSteps(const v1::Step& step);
// Returns the number of inputs of a step for which EmitsSteps is true.
std::size_t OperandsOf(const v1::Step& step);

// The result of a conversion; nothing if the result of the step is unknown.
using MaybeStep = absl::StatusOr<std::optional<ConvertedStep>>;
// Converts a step that is one step of the server, with any variant.
MaybeStep ConvertStep(const v1::Step& step, const OperandList& inputs, ScalarReader scalars);
// Emits the steps of a step for which EmitsSteps is true. All of its inputs must be known.
absl::StatusOr<StepResults> CheckEmitting(const v1::Step& step, const OperandList& inputs, EmitStep emit);

}  // namespace warpline

#endif  // WARPLINE_PROTO_RULES_STEP_KINDS_H_
