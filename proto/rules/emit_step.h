// Lets the rules of operations that consist of several steps add these steps to a program.
#ifndef WARPLINE_PROTO_RULES_EMIT_STEP_H_
#define WARPLINE_PROTO_RULES_EMIT_STEP_H_

#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "proto/rules/convert_step.h"

namespace warpline {

// Adds a step to a program and returns its result. `into` is a tensor of which the step writes a part; -1: it
// writes a new tensor. Further results are the tensors after it.
using EmitStep =
    absl::FunctionRef<absl::StatusOr<Operand>(ConvertedStep step, const std::string& variant, int into)>;

// The results of a step: the main one, and an additional one if there is any.
struct StepResults {
  Operand own;
  std::optional<Operand> further{};
};

}  // namespace warpline

#endif  // WARPLINE_PROTO_RULES_EMIT_STEP_H_
