// The steps of a reduction. It is one step, except for complex numbers and for products of integers as
// floats.
#ifndef WARPLINE_PROTO_RULES_REDUCE_STEPS_H_
#define WARPLINE_PROTO_RULES_REDUCE_STEPS_H_

#include <string>

#include "absl/status/statusor.h"
#include "proto/rules/convert_step.h"
#include "proto/rules/emit_step.h"

namespace warpline {

// Sums and means of complex numbers are those of their real and imaginary parts. Products repeatedly multiply
// one half by the other. x must have rows (RowStrideOf). Returns the result.
absl::StatusOr<Operand> ReduceSteps(const Operand& x, const ReduceOptions& options,
                                    const std::string& variant, EmitStep emit);

}  // namespace warpline

#endif  // WARPLINE_PROTO_RULES_REDUCE_STEPS_H_
