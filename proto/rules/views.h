// Views: the elements of an operand in another order, or some of them, without a copy. Pure.
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

// An operand whose rows, of the last axis, are `row_stride` elements apart.
Operand RowsOperand(std::string field, int tensor, DType dtype, const Shape& shape, std::int64_t row_stride);
inline Operand DenseOperand(std::string field, int tensor, const TensorSpec& spec) {
  return RowsOperand(std::move(field), tensor, spec.dtype, spec.shape, 0);
}

// The elements from one row to the next, if that is all that strides say; never the 0 that means dense.
std::optional<std::int64_t> RowStrideOf(const Operand& x);
bool IsDense(const Operand& x);
// The last two axes swapped; x has at least two.
Operand Swapped(const Operand& x);
// Returns whether a product reads x as it lies: its matrices have rows, or are the transposes of such.
bool IsMatrices(const Operand& x);
// Returns whether neighbours along the last axis are further apart than those along another one. To read such
// an array in its order is slow; a transpose comes first.
bool ReadsAcross(const Operand& x);

// A permutation of the axes; empty: the last two are swapped. Errors name "perm".
using Perm = PerAxis<std::int8_t>;
absl::StatusOr<Perm> CheckPerm(const Operand& x, absl::Span<const std::int32_t> given);
Operand PermuteView(const Operand& x, const Perm& perm);

// Each checks the options of a step, and returns what it gives. Errors name the fields of the step.
absl::StatusOr<Shape> CheckReshape(const Operand& x, const v1::ReshapeStep& reshape);
absl::StatusOr<Operand> SliceView(const Operand& x, const v1::SliceStep& slice);
absl::StatusOr<Operand> BroadcastView(const Operand& x, const v1::BroadcastStep& broadcast);
absl::StatusOr<Operand> BroadcastView(const Operand& x, const Shape& shape);
absl::StatusOr<Operand> DiagonalView(const Operand& x, const v1::DiagonalStep& diagonal);

// The array that concat makes of its inputs, of which there is at least one.
struct Joined {
  TensorSpec whole;
  int axis = 0;
};
absl::StatusOr<Joined> JoinedOf(const OperandList& inputs, std::int32_t axis);

// An array of this shape with the same elements in row-major order. Nothing if there are no strides for it,
// unless the elements are copied.
std::optional<Operand> ReshapeView(const Operand& x, const Shape& shape);

// x with one element in place of each that it repeats; and a copy of that as x again.
Operand WithoutRepeats(const Operand& x);
Operand WithRepeats(const Operand& copy, const Operand& x);

// The step that copies a view into a dense tensor. The result must have at most 2^56 bytes.
ConvertedStep CopyOf(const Operand& x);
// The step that converts the elements of x, which has no more than 2^56 bytes.
ConvertedStep CastOf(const Operand& x, DType dtype);
// The step that copies x to where an array with these strides has it, `offset` elements from the start of its
// tensor.
ConvertedStep CopyInto(const Operand& x, const TensorSpec& whole, const Strides& strides,
                       std::int64_t offset);

}  // namespace warpline

#endif  // WARPLINE_PROTO_RULES_VIEWS_H_
