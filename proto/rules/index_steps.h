// The rules of operations with indices.
#ifndef WARPLINE_PROTO_RULES_INDEX_STEPS_H_
#define WARPLINE_PROTO_RULES_INDEX_STEPS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "proto/rules/convert_step.h"
#include "proto/rules/emit_step.h"

namespace warpline {

// Each function returns the result. Indices that are not dense are copied first, so that their positions are
// their numbers in row-major order.
absl::StatusOr<Operand> TakeSteps(const Operand& x, const Operand& indices, std::int32_t axis,
                                  const std::string& variant, EmitStep emit);
absl::StatusOr<Operand> TakeAlongAxisSteps(const Operand& x, const Operand& indices, std::int32_t axis,
                                           const std::string& variant, EmitStep emit);
absl::StatusOr<Operand> PutAlongAxisSteps(const Operand& x, const Operand& indices, const Operand& values,
                                          std::int32_t axis, const std::string& variant, EmitStep emit);

// Adds two copies into one tensor.
absl::StatusOr<Operand> SetSliceSteps(const Operand& x, const Operand& values, const v1::SetSliceStep& set,
                                      EmitStep emit);

absl::StatusOr<Operand> CompressSteps(const Operand& x, const Operand& mask, const std::string& variant,
                                      EmitStep emit);

// Returns INVALID_ARGUMENT unless the operand has a type that indices may have.
absl::Status CheckIndices(const Operand& indices);
// Returns the operand itself, or a copy if it is not dense.
absl::StatusOr<Operand> Dense(const Operand& x, EmitStep emit);

}  // namespace warpline

#endif  // WARPLINE_PROTO_RULES_INDEX_STEPS_H_
