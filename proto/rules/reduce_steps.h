// The steps of a reduction: one, but for complex numbers and for products of integers as floats.
#ifndef WARPLINE_PROTO_RULES_REDUCE_STEPS_H_
#define WARPLINE_PROTO_RULES_REDUCE_STEPS_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "proto/rules/convert_step.h"

namespace warpline {

// Adds a step to a program and returns its result: tensor `into`, of which it writes a part, or a new one if
// that is -1.
using EmitStep =
    absl::FunctionRef<absl::StatusOr<Operand>(ConvertedStep step, const std::string& variant, int into)>;

// Sums and means of complex numbers are those of their parts. Products are those of their halves, again and
// again. x has rows (RowStrideOf). Returns the result.
absl::StatusOr<Operand> ReduceSteps(const Operand& x, const ReduceOptions& options,
                                    const std::string& variant, EmitStep emit);

}  // namespace warpline

#endif  // WARPLINE_PROTO_RULES_REDUCE_STEPS_H_
