// The rules of operations that move or repeat whole operands: they copy into one tensor.
#ifndef WARPLINE_PROTO_RULES_REPEAT_STEPS_H_
#define WARPLINE_PROTO_RULES_REPEAT_STEPS_H_

#include "absl/status/statusor.h"
#include "proto/rules/convert_step.h"
#include "proto/rules/emit_step.h"

namespace warpline {

// Each function returns the result; x itself if nothing moves.
absl::StatusOr<Operand> RollSteps(const Operand& x, const v1::RollStep& roll, EmitStep emit);
absl::StatusOr<Operand> TileSteps(const Operand& x, const v1::TileStep& tile, EmitStep emit);
absl::StatusOr<Operand> RepeatSteps(const Operand& x, const v1::RepeatStep& repeat, EmitStep emit);
// `values` may be null, which means zeros.
absl::StatusOr<Operand> PadSteps(const Operand& x, const Operand* values, const v1::PadStep& pad,
                                 EmitStep emit);

}  // namespace warpline

#endif  // WARPLINE_PROTO_RULES_REPEAT_STEPS_H_
