// The steps of a reduction: one, but for complex numbers and for products of integers as floats.
#ifndef WARPLINE_PROTO_RULES_REDUCE_STEPS_H_
#define WARPLINE_PROTO_RULES_REDUCE_STEPS_H_

#include <string>

#include "absl/status/statusor.h"
#include "proto/rules/convert_step.h"
#include "proto/rules/emit_step.h"

namespace warpline {

// Sums and means of complex numbers are those of their parts. Products are those of their halves, again and
// again. x has rows (RowStrideOf). Returns the result.
absl::StatusOr<Operand> ReduceSteps(const Operand& x, const ReduceOptions& options,
                                    const std::string& variant, EmitStep emit);

}  // namespace warpline

#endif  // WARPLINE_PROTO_RULES_REDUCE_STEPS_H_
