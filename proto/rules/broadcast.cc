#include "proto/rules/broadcast.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "kernels/field_error.h"
#include "kernels/status_macros.h"
#include "proto/rules/operand_checks.h"
#include "proto/rules/tensor_rules.h"

namespace warpline {
namespace {

// Returns the operand's size along an axis of the result. The operand's axes align with the last axes of the
// result.
std::int64_t SizeAlong(const Operand& operand, int rank, int axis) {
  const int own = axis - (rank - operand.shape.rank);
  return own < 0 ? 1 : operand.shape[own];
}

// Returns the shape that the map asks for. All inputs must be broadcastable to it.
absl::StatusOr<Shape> GivenShape(const OperandList& inputs, const v1::MapStep& map) {
  ASSIGN_OR_RETURN(const Shape shape, CheckShape("shape", map.shape()));
  for (const Operand* input : inputs) {
    bool fits = input->shape.rank <= shape.rank;
    for (int axis = 0; axis < shape.rank && fits; ++axis) {
      const std::int64_t size = SizeAlong(*input, shape.rank, axis);
      fits = size == 1 || size == shape[axis];
    }
    if (fits) continue;
    return FieldError("shape", absl::StrCat(ToString(shape), ", to which ", input->field, ", ",
                                            ToString(input->shape), ", cannot be broadcast"));
  }
  return shape;
}

}  // namespace

Strides BroadcastStrides(const Operand& operand, int rank) {
  Strides strides{};
  for (int i = 0; i < rank; ++i) {
    strides[i] = SizeAlong(operand, rank, i) == 1 ? 0 : operand.strides[i - (rank - operand.shape.rank)];
  }
  return strides;
}

absl::StatusOr<Shape> MapShape(const OperandList& inputs, const v1::MapStep& map) {
  if (map.shape_size() > 0) return GivenShape(inputs, map);
  Shape shape;
  for (const Operand* input : inputs) shape.rank = std::max(shape.rank, input->shape.rank);
  for (int axis = 0; axis < shape.rank; ++axis) {
    shape[axis] = 1;
    for (const Operand* input : inputs) {
      ASSIGN_OR_RETURN(shape[axis], BroadcastSize(*input, axis - (shape.rank - input->shape.rank),
                                                  SizeAlong(*input, shape.rank, axis), shape[axis], "the"));
    }
  }
  return shape;
}

}  // namespace warpline
