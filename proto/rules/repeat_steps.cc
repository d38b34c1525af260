#include "proto/rules/repeat_steps.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/field_error.h"
#include "kernels/status_macros.h"
#include "proto/rules/index_steps.h"
#include "proto/rules/operand_checks.h"
#include "proto/rules/tensor_rules.h"
#include "proto/rules/views.h"

namespace warpline {
namespace {

// The number of elements before and after an axis.
struct Sides {
  std::int64_t outer = 1, inner = 1;
};
Sides SidesOf(const Shape& shape, int axis) {
  Sides sides;
  for (int i = 0; i < shape.rank; ++i) {
    if (i != axis) (i < axis ? sides.outer : sides.inner) *= shape[i];
  }
  return sides;
}

// Returns x as one row. Copies x unless it is dense.
absl::StatusOr<Operand> Flat(const Operand& x, EmitStep emit) {
  ASSIGN_OR_RETURN(Operand flat, Dense(x, emit));
  const std::int64_t count = x.shape.Count();
  flat.shape = {count};
  flat.strides = {1};
  return flat;
}

// Returns a dense copy of a view, with this shape.
absl::StatusOr<Operand> CopyAs(const Operand& view, const Shape& shape, EmitStep emit) {
  ASSIGN_OR_RETURN(Operand copy, emit(CopyOf(view), "", -1));
  copy.field = view.field;
  copy.shape = shape;
  copy.strides = RowMajorStrides(shape);
  return copy;
}

// Returns the size of an axis after repeating it `count` times. Errors name `field`.
absl::StatusOr<std::int64_t> Times(const std::string& field, std::int64_t size, std::int64_t count) {
  if (count < 0) return FieldError(field, absl::StrCat(count, "; it must be at least 0"));
  std::int64_t product = 0;
  if (!__builtin_mul_overflow(size, count, &product)) return product;
  return FieldError(field, absl::StrCat(count, " times the axis, of size ", size, ", are above 2^63"));
}

// Copies x with its elements moved by `shift` along an axis. Elements that leave at the end enter at the
// front.
absl::StatusOr<Operand> RollAxis(const Operand& x, int axis, std::int64_t shift, EmitStep emit) {
  const std::int64_t size = x.shape[axis];
  if (x.shape.Count() == 0 || shift % size == 0) return x;
  const std::int64_t moved = (shift % size + size) % size;
  ASSIGN_OR_RETURN(const TensorSpec whole, DenseResult(x.field + ".shape", x.dtype, x.shape));
  const Strides strides = RowMajorStrides(x.shape);
  Operand first = x, last = x;
  first.shape[axis] = size - moved;
  last.shape[axis] = moved;
  last.offset += (size - moved) * x.strides[axis];
  ASSIGN_OR_RETURN(const Operand made, emit(CopyInto(last, whole, strides, 0), "", -1));
  ASSIGN_OR_RETURN(Operand result,
                   emit(CopyInto(first, whole, strides, moved * strides[axis]), "", made.tensor));
  result.field = x.field;
  return result;
}

absl::StatusOr<Operand> TileAxis(const Operand& x, int axis, std::int64_t count, const std::string& field,
                                 EmitStep emit) {
  if (count == 1) return x;
  Shape shape = x.shape;
  ASSIGN_OR_RETURN(shape[axis], Times(field, shape[axis], count));
  RETURN_IF_ERROR(DenseResult(field, x.dtype, shape).status());
  ASSIGN_OR_RETURN(Operand view, Dense(x, emit));
  const Sides sides = SidesOf(x.shape, axis);
  const std::int64_t block = x.shape[axis] * sides.inner;
  view.shape = {sides.outer, count, block};
  view.strides = {block, 0, 1};
  return CopyAs(view, shape, emit);
}

// Returns a step that fills a tensor with zeros, for any type that maps support.
absl::StatusOr<ConvertedStep> Zeros(const TensorSpec& spec) {
  v1::MapStep map;
  v1::MapNode& node = *map.add_nodes();
  node.set_op(v1::MAP_OP_CONSTANT);
  node.set_data_type(ToProto(spec.dtype));
  for (int i = 0; i < spec.shape.rank; ++i) map.add_shape(spec.shape[i]);
  return ConvertMap({}, map, [](const char*, double) { return Scalar{}; });
}

}  // namespace

absl::StatusOr<Operand> RollSteps(const Operand& x, const v1::RollStep& roll, EmitStep emit) {
  if (roll.axes_size() == 0) {
    if (roll.shifts_size() != 1) {
      return FieldError("shifts",
                        absl::StrCat("has ", roll.shifts_size(), " numbers; without axes it has 1"));
    }
    ASSIGN_OR_RETURN(const Operand flat, Flat(x, emit));
    ASSIGN_OR_RETURN(Operand rolled, RollAxis(flat, 0, roll.shifts(0), emit));
    rolled.shape = x.shape;
    rolled.strides = RowMajorStrides(x.shape);
    return rolled;
  }
  if (roll.shifts_size() != roll.axes_size()) {
    return FieldError("shifts", absl::StrCat("has ", roll.shifts_size(), " numbers, but there are ",
                                             roll.axes_size(), " axes"));
  }
  Operand result = x;
  for (int i = 0; i < roll.axes_size(); ++i) {
    ASSIGN_OR_RETURN(const int axis, CheckAxis(absl::StrCat("axes[", i, "]"), roll.axes(i), x.shape.rank));
    ASSIGN_OR_RETURN(result, RollAxis(result, axis, roll.shifts(i), emit));
  }
  return result;
}

absl::StatusOr<Operand> TileSteps(const Operand& x, const v1::TileStep& tile, EmitStep emit) {
  const int counts = tile.counts_size();
  if (counts > kMaxRank) {
    return FieldError("counts", absl::StrCat("has ", counts, " numbers; the limit is ", kMaxRank));
  }
  // Add axes in front of x if there are more counts than axes. If there are fewer, they apply to the last
  // axes.
  Operand result = x;
  if (const int more = counts - x.shape.rank; more > 0) {
    Shape shape;
    for (int i = 0; i < counts; ++i) shape.Append(i < more ? 1 : x.shape[i - more]);
    std::copy_n(x.strides.begin(), x.shape.rank, result.strides.begin() + more);
    std::fill_n(result.strides.begin(), more, 0);
    result.shape = shape;
  }
  for (int i = 0; i < counts; ++i) {
    ASSIGN_OR_RETURN(result, TileAxis(result, result.shape.rank - counts + i, tile.counts(i),
                                      absl::StrCat("counts[", i, "]"), emit));
  }
  return result;
}

absl::StatusOr<Operand> RepeatSteps(const Operand& x, const v1::RepeatStep& repeat, EmitStep emit) {
  Operand along = x;
  int axis = 0;
  if (repeat.has_axis()) {
    ASSIGN_OR_RETURN(axis, CheckAxis("axis", repeat.axis(), x.shape.rank));
  } else {
    ASSIGN_OR_RETURN(along, Flat(x, emit));
  }
  Shape shape = along.shape;
  ASSIGN_OR_RETURN(shape[axis], Times("count", shape[axis], repeat.count()));
  RETURN_IF_ERROR(DenseResult("count", x.dtype, shape).status());
  if (repeat.count() == 1) return along;
  ASSIGN_OR_RETURN(Operand view, Dense(along, emit));
  const std::int64_t size = along.shape[axis];
  const Sides sides = SidesOf(along.shape, axis);
  view.shape = {sides.outer, size, repeat.count(), sides.inner};
  view.strides = {size * sides.inner, sides.inner, 0, 1};
  return CopyAs(view, shape, emit);
}

absl::StatusOr<Operand> PadSteps(const Operand& x, const Operand* values, const v1::PadStep& pad,
                                 EmitStep emit) {
  const int count = std::max(pad.before_size(), pad.after_size());
  if (pad.before_size() > 0 && pad.after_size() > 0 && pad.before_size() != pad.after_size()) {
    return FieldError("after",
                      absl::StrCat("has ", pad.after_size(), " numbers, but before has ", pad.before_size()));
  }
  if (pad.axes_size() > 0 && pad.axes_size() != count) {
    return FieldError("axes",
                      absl::StrCat("has ", pad.axes_size(), " numbers, but before or after has ", count));
  }
  if (count > x.shape.rank) {
    return FieldError("before",
                      absl::StrCat("has ", count, " numbers, but ", x.field, " has rank ", x.shape.rank));
  }
  Shape shape = x.shape;
  Strides first{};  // the position of x in the result
  std::uint32_t seen = 0;
  for (int i = 0; i < count; ++i) {
    int axis = i;
    if (pad.axes_size() > 0) {
      ASSIGN_OR_RETURN(axis, CheckAxis(absl::StrCat("axes[", i, "]"), pad.axes(i), x.shape.rank));
    }
    if ((seen >> axis) & 1u) return FieldError("axes", absl::StrCat("axis ", axis, " is named twice"));
    seen |= 1u << axis;
    const std::int64_t before = pad.before_size() > 0 ? pad.before(i) : 0;
    const std::int64_t after = pad.after_size() > 0 ? pad.after(i) : 0;
    for (const auto& [field, width] : {std::pair("before", before), {"after", after}}) {
      constexpr std::int64_t kMost = std::int64_t{1} << 60;
      if (width < 0 || width > kMost) {
        return FieldError(absl::StrCat(field, "[", i, "]"), absl::StrCat(width, "; it must be in [0, 2^60]"));
      }
      shape[axis] += width;
    }
    first[axis] = before;
  }
  ASSIGN_OR_RETURN(const TensorSpec whole, DenseResult("before", x.dtype, shape));
  const Strides strides = RowMajorStrides(shape);
  std::int64_t offset = 0;
  for (int i = 0; i < shape.rank; ++i) offset += first[i] * strides[i];
  ConvertedStep fill;
  if (values != nullptr) {
    RETURN_IF_ERROR(CheckSameType(*values, x.dtype, x.field));
    const absl::StatusOr<Operand> spread = BroadcastView(*values, shape);
    if (!spread.ok()) {
      return FieldError(
          values->field + ".shape",
          absl::StrCat(ToString(values->shape), " cannot be broadcast to the result, ", ToString(shape)));
    }
    fill = CopyInto(*spread, whole, strides, 0);
  } else {
    RETURN_IF_ERROR(CheckTakes(x, "pad with zeros", IsMapType));
    ASSIGN_OR_RETURN(fill, Zeros(whole));
  }
  ASSIGN_OR_RETURN(const Operand filled, emit(std::move(fill), "", -1));
  if (x.shape.Count() == 0) return filled;
  return emit(CopyInto(x, whole, strides, offset), "", filled.tensor);
}

}  // namespace warpline
