// Broadcasts the operands of a map to its shape.
#ifndef WARPLINE_PROTO_RULES_BROADCAST_H_
#define WARPLINE_PROTO_RULES_BROADCAST_H_

#include "absl/status/statusor.h"
#include "kernels/shape.h"
#include "proto/rules/convert_step.h"

namespace warpline {

// Returns the strides by which a map of this rank reads the operand. They are 0 along axes where it has one
// element.
Strides BroadcastStrides(const Operand& operand, int rank);

// Returns the shape of the map: the shape that it asks for, or the smallest one to which all inputs can be
// broadcast.
absl::StatusOr<Shape> MapShape(const OperandList& inputs, const v1::MapStep& map);

}  // namespace warpline

#endif  // WARPLINE_PROTO_RULES_BROADCAST_H_
