// Views: the elements of an operand, or some of them, in another order, without a copy. Pure.
#ifndef WARPLINE_PROTO_RULES_VIEWS_H_
#define WARPLINE_PROTO_RULES_VIEWS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "proto/rules/convert_step.h"

namespace warpline {

// Returns an operand whose rows, along the last axis, are `row_stride` elements apart.
Operand RowsOperand(std::string field, int tensor, DType dtype, const Shape& shape, std::int64_t row_stride);
inline Operand DenseOperand(std::string field, int tensor, const TensorSpec& spec) {
  return RowsOperand(std::move(field), tensor, spec.dtype, spec.shape, 0);
}

// Returns the number of elements from one row to the next, if the strides are otherwise dense; never 0.
std::optional<std::int64_t> RowStrideOf(const Operand& x);
bool IsDense(const Operand& x);
// Returns x with its last two axes swapped; x must have at least two.
Operand Swapped(const Operand& x);
// Returns whether a product can read x in place: its matrices, or their transposes, must have rows.
bool IsMatrices(const Operand& x);
// Returns whether neighbours along the last axis are further apart than those along another axis. Reading
// such an array in its order is slow, so a transpose comes first.
bool ReadsAcross(const Operand& x);

// A permutation of the axes. An empty list swaps the last two axes. Errors name "perm".
using Perm = PerAxis<std::int8_t>;
absl::StatusOr<Perm> CheckPerm(const Operand& x, absl::Span<const std::int32_t> given);
Operand PermuteView(const Operand& x, const Perm& perm);

// Each function checks the options of a step, and returns the result. Errors name the fields of the step.
absl::StatusOr<Shape> CheckReshape(const Operand& x, const v1::ReshapeStep& reshape);
absl::StatusOr<Operand> SliceView(const Operand& x, const v1::SliceStep& slice);
absl::StatusOr<Operand> BroadcastView(const Operand& x, const v1::BroadcastStep& broadcast);
absl::StatusOr<Operand> BroadcastView(const Operand& x, const Shape& shape);
absl::StatusOr<Operand> DiagonalView(const Operand& x, const v1::DiagonalStep& diagonal);

// The result of concat, which needs at least one input.
struct Joined {
  TensorSpec whole;
  int axis = 0;
};
absl::StatusOr<Joined> JoinedOf(const OperandList& inputs, std::int32_t axis);

// Returns an array of this shape with the same elements in row-major order. Returns nothing if that is
// impossible without a copy.
std::optional<Operand> ReshapeView(const Operand& x, const Shape& shape);

// WithoutRepeats removes repeated elements from x. WithRepeats restores them in a copy of that.
Operand WithoutRepeats(const Operand& x);
Operand WithRepeats(const Operand& copy, const Operand& x);

// Returns a step that copies a view into a dense tensor. The result must have at most 2^56 bytes.
ConvertedStep CopyOf(const Operand& x);
// Returns a step that converts the elements of x, which must have at most 2^56 bytes.
ConvertedStep CastOf(const Operand& x, DType dtype);
// Returns a step that copies x to a position of another tensor: to an array with these strides, `offset`
// elements from the start of the tensor.
ConvertedStep CopyInto(const Operand& x, const TensorSpec& whole, const Strides& strides,
                       std::int64_t offset);

}  // namespace warpline

#endif  // WARPLINE_PROTO_RULES_VIEWS_H_
