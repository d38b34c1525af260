// How rules of operations that take several steps add them to a program.
#ifndef WARPLINE_PROTO_RULES_EMIT_STEP_H_
#define WARPLINE_PROTO_RULES_EMIT_STEP_H_

#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "proto/rules/convert_step.h"

namespace warpline {

// Adds a step to a program and returns its result: tensor `into`, of which it writes a part, or a new one if
// that is -1. Further results are the tensors after it.
using EmitStep =
    absl::FunctionRef<absl::StatusOr<Operand>(ConvertedStep step, const std::string& variant, int into)>;

// The results of a step: its own, and a further one if it has any.
struct StepResults {
  Operand own;
  std::optional<Operand> further{};
};

}  // namespace warpline

#endif  // WARPLINE_PROTO_RULES_EMIT_STEP_H_
