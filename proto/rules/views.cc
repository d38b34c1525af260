#include "proto/rules/views.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/field_error.h"
#include "kernels/status_macros.h"
#include "proto/rules/operand_checks.h"
#include "proto/rules/tensor_rules.h"

namespace warpline {
namespace {

// Returns the unsigned integer type of the same size, so that copies are exact, bit for bit. 16-byte complex
// numbers keep their type: they are only moved.
DType BitsOf(DType dtype) {
  switch (SizeOf(dtype)) {
    case 1:
      return DType::kU8;
    case 2:
      return DType::kU16;
    case 4:
      return DType::kU32;
    case 8:
      return DType::kU64;
    default:
      return DType::kC128;
  }
}

MapProblem BitCopy(const Operand& x) {
  const DType bits = BitsOf(x.dtype);
  return {.dtype = bits,
          .shape = x.shape,
          .inputs = {{bits, x.strides}},
          .nodes = {{MapOp::kCast, bits, {0}}},
          .out_strides = {}};
}

// Returns the axes in the order of their strides, largest first. Axes of size 1 come first.
Perm MemoryOrder(const Operand& x) {
  Perm order{};
  std::iota(order.begin(), order.end(), std::int8_t{0});
  const auto rank = static_cast<std::ptrdiff_t>(x.shape.rank);
  std::stable_sort(order.begin(), order.begin() + rank, [&](std::int8_t a, std::int8_t b) {
    if (x.shape[a] == 1 || x.shape[b] == 1) return x.shape[a] == 1 && x.shape[b] != 1;
    return x.strides[a] > x.strides[b];
  });
  return order;
}

// Returns the transpose of an array with rows that gives the elements of x; nothing if there is none.
std::optional<TransposeProblem> TransposeFor(const Operand& x) {
  const Perm order = MemoryOrder(x);
  const Operand stored = PermuteView(x, order);
  const std::optional<std::int64_t> row_stride = RowStrideOf(stored);
  if (!row_stride.has_value()) return std::nullopt;
  TransposeProblem problem{.dtype = x.dtype, .shape = stored.shape, .row_stride = *row_stride};
  for (int i = 0; i < x.shape.rank; ++i) problem.perm[order[i]] = static_cast<std::int8_t>(i);
  return problem;
}

// A view may have more elements than its tensor, but not more than a tensor could have.
absl::Status CheckSize(const std::string& field, DType dtype, const Shape& shape) {
  return StorageBytes(field, dtype, shape, 0).status();
}

// The elements of one axis that a slice takes.
struct Taken {
  std::int64_t start = 0, step = 1, count = 0;
};

// Returns which elements Python's slice [start:end:step] takes from an axis of `size` elements.
Taken TakeFrom(std::int64_t size, std::int64_t start, std::int64_t end, std::int64_t step) {
  const bool forward = step > 0;
  const std::int64_t least = forward ? 0 : -1, most = forward ? size : size - 1;
  const auto place = [&](std::int64_t index) {
    return std::clamp(index < 0 ? index + size : index, least, most);
  };
  Taken taken{.start = place(start), .step = std::clamp(step, -size - 1, size + 1)};
  const std::int64_t length = forward ? place(end) - taken.start : taken.start - place(end);
  const std::int64_t stride = std::abs(taken.step);
  taken.count = length <= 0 ? 0 : (length + stride - 1) / stride;
  return taken;
}

}  // namespace

Operand RowsOperand(std::string field, int tensor, DType dtype, const Shape& shape, std::int64_t row_stride) {
  return {std::move(field), tensor, dtype, shape, RowMajorStrides(shape, row_stride)};
}

std::optional<std::int64_t> RowStrideOf(const Operand& x) {
  const Shape& shape = x.shape;
  const std::int64_t dense = RowSize(shape);
  if (shape.Count() == 0) return std::max<std::int64_t>(dense, 1);
  // The innermost row axis with a size above 1 gives the row stride.
  int axis = shape.rank - 2;
  while (axis > 0 && shape[axis] == 1) --axis;
  const std::int64_t row_stride = axis >= 0 && shape[axis] > 1 ? x.strides[axis] : dense;
  if (row_stride < dense) return std::nullopt;
  const Strides strides = RowMajorStrides(shape, row_stride);
  for (int i = 0; i < shape.rank; ++i) {
    if (shape[i] != 1 && x.strides[i] != strides[i]) return std::nullopt;
  }
  return row_stride;
}

bool IsDense(const Operand& x) {
  return x.shape.Count() == 0 || RowStrideOf(x) == std::optional(RowSize(x.shape));
}

Operand Swapped(const Operand& x) {
  Operand swapped = x;
  const int rank = x.shape.rank;
  std::swap(swapped.shape[rank - 1], swapped.shape[rank - 2]);
  std::swap(swapped.strides[rank - 1], swapped.strides[rank - 2]);
  return swapped;
}

bool IsMatrices(const Operand& x) {
  return x.shape.rank < 2 || RowStrideOf(x).has_value() || RowStrideOf(Swapped(x)).has_value();
}

bool ReadsAcross(const Operand& x) {
  int last = x.shape.rank - 1;
  while (last >= 0 && x.shape[last] == 1) --last;
  for (int i = 0; i < last; ++i) {
    if (x.shape[i] != 1 && x.strides[i] != 0 && std::abs(x.strides[i]) < std::abs(x.strides[last])) {
      return true;
    }
  }
  return false;
}

absl::StatusOr<Perm> CheckPerm(const Operand& x, absl::Span<const std::int32_t> given) {
  const int rank = x.shape.rank;
  Perm perm{};
  if (given.empty()) {
    for (int i = 0; i < rank; ++i) perm[i] = static_cast<std::int8_t>(i);
    if (rank >= 2) std::swap(perm[rank - 2], perm[rank - 1]);
    return perm;
  }
  if (static_cast<int>(given.size()) != rank) {
    return FieldError("perm", absl::StrCat("has ", given.size(), " entries; ", x.field, " has rank ", rank));
  }
  std::uint32_t seen = 0;
  for (int i = 0; i < rank; ++i) {
    const std::int32_t axis = given[static_cast<std::size_t>(i)];
    if (axis < 0 || axis >= rank) {
      return FieldError("perm", absl::StrCat("entry ", i, " is ", axis, "; it must be in [0, ", rank, ")"));
    }
    if ((seen >> axis) & 1u) return FieldError("perm", absl::StrCat("axis ", axis, " is named twice"));
    seen |= 1u << axis;
    perm[i] = static_cast<std::int8_t>(axis);
  }
  return perm;
}

Operand PermuteView(const Operand& x, const Perm& perm) {
  Operand view = x;
  for (int i = 0; i < x.shape.rank; ++i) {
    view.shape[i] = x.shape[perm[i]];
    view.strides[i] = x.strides[perm[i]];
  }
  return view;
}

absl::StatusOr<Shape> CheckReshape(const Operand& x, const v1::ReshapeStep& reshape) {
  std::vector<std::int64_t> sizes(reshape.shape().begin(), reshape.shape().end());
  const auto open = std::find(sizes.begin(), sizes.end(), -1);
  const auto refused = [&] {
    return FieldError("shape", absl::StrCat("does not have the ", x.shape.Count(), " elements of ", x.field,
                                            ", ", ToString(x.shape)));
  };
  if (open != sizes.end()) {
    if (std::count(sizes.begin(), sizes.end(), -1) > 1) {
      return FieldError("shape", "is -1 along more than one axis");
    }
    *open = 1;
    ASSIGN_OR_RETURN(const Shape others, CheckShape("shape", sizes));
    RETURN_IF_ERROR(CheckSize("shape", x.dtype, others));
    if (others.Count() == 0 || x.shape.Count() % others.Count() != 0) return refused();
    *open = x.shape.Count() / others.Count();
  }
  ASSIGN_OR_RETURN(const Shape shape, CheckShape("shape", sizes));
  RETURN_IF_ERROR(CheckSize("shape", x.dtype, shape));
  if (shape.Count() != x.shape.Count()) return refused();
  return shape;
}

std::optional<Operand> ReshapeView(const Operand& x, const Shape& shape) {
  Operand view = x;
  view.shape = shape;
  view.strides = RowMajorStrides(shape);
  if (shape.Count() == 0) return view;
  // Contiguous groups of axes of x are treated as one axis, starting from the innermost. `left` elements of
  // the current group, `stride` apart, are not assigned to axes of the result yet.
  int from = x.shape.rank - 1;
  std::int64_t left = 1, stride = 1;
  for (int axis = shape.rank - 1; axis >= 0; --axis) {
    if (shape[axis] == 1) continue;
    if (left == 1) {
      while (x.shape[from] == 1) --from;
      left = x.shape[from], stride = x.strides[from];
      for (--from; from >= 0 && (x.shape[from] == 1 || x.strides[from] == stride * left); --from) {
        left *= x.shape[from];
      }
    }
    if (left % shape[axis] != 0) return std::nullopt;
    view.strides[axis] = stride;
    left /= shape[axis], stride *= shape[axis];
  }
  return view;
}

absl::StatusOr<Operand> SliceView(const Operand& x, const v1::SliceStep& slice) {
  // All lists that are given must have the same number of axes.
  int count = 0;
  const char* counted = "";
  for (const auto& [field, size] : {std::pair("starts", slice.starts_size()),
                                    {"ends", slice.ends_size()},
                                    {"axes", slice.axes_size()},
                                    {"steps", slice.steps_size()}}) {
    if (count == 0) count = size, counted = field;
    if (size == 0 || size == count) continue;
    return FieldError(field, absl::StrCat("has ", size, " entries, but ", counted, " has ", count));
  }
  if (slice.axes_size() == 0 && count > x.shape.rank) {
    return FieldError(counted,
                      absl::StrCat("has ", count, " entries; ", x.field, " has rank ", x.shape.rank));
  }
  Operand view = x;
  std::uint32_t seen = 0;
  for (int i = 0; i < count; ++i) {
    int axis = i;
    if (slice.axes_size() > 0) {
      ASSIGN_OR_RETURN(axis, CheckAxis(absl::StrCat("axes[", i, "]"), slice.axes(i), x.shape.rank));
    }
    if ((seen >> axis) & 1u) return FieldError("axes", absl::StrCat("axis ", axis, " is named twice"));
    seen |= 1u << axis;
    const std::int64_t step = slice.steps_size() > 0 ? slice.steps(i) : 1;
    if (step == 0) return FieldError(absl::StrCat("steps[", i, "]"), "0; it must be another number");
    constexpr std::int64_t kFirst = std::numeric_limits<std::int64_t>::min();
    constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max();
    const std::int64_t start = slice.starts_size() > 0 ? slice.starts(i) : step > 0 ? 0 : kLast;
    const std::int64_t end = slice.ends_size() > 0 ? slice.ends(i) : step > 0 ? kLast : kFirst;
    const Taken taken = TakeFrom(x.shape[axis], start, end, step);
    view.shape[axis] = taken.count;
    // The stride of an axis with one element is irrelevant.
    view.strides[axis] = taken.count <= 1 ? 0 : x.strides[axis] * taken.step;
    if (taken.count > 0) view.offset += taken.start * x.strides[axis];
  }
  if (view.shape.Count() == 0) view.offset = x.offset;
  return view;
}

absl::StatusOr<Operand> BroadcastView(const Operand& x, const v1::BroadcastStep& broadcast) {
  ASSIGN_OR_RETURN(const Shape shape, CheckShape("shape", broadcast.shape()));
  RETURN_IF_ERROR(CheckSize("shape", x.dtype, shape));
  return BroadcastView(x, shape);
}

absl::StatusOr<Operand> BroadcastView(const Operand& x, const Shape& shape) {
  const int more = shape.rank - x.shape.rank;
  Operand view = x;
  view.shape = shape;
  view.strides = {};
  bool fits = more >= 0;
  for (int i = 0; i < x.shape.rank && fits; ++i) {
    fits = x.shape[i] == shape[i + more] || x.shape[i] == 1;
    if (x.shape[i] != 1) view.strides[i + more] = x.strides[i];
  }
  if (fits) return view;
  return FieldError("shape", absl::StrCat(ToString(shape), "; ", x.field, " is ", ToString(x.shape),
                                          ", of which only axes of size 1 are broadcast"));
}

absl::StatusOr<Operand> DiagonalView(const Operand& x, const v1::DiagonalStep& diagonal) {
  const int rank = x.shape.rank;
  if (rank < 2) {
    return FieldError(x.field + ".shape", absl::StrCat("rank ", rank, "; at least 2 is needed"));
  }
  ASSIGN_OR_RETURN(const int first, CheckAxis("axis1", diagonal.has_axis1() ? diagonal.axis1() : -2, rank));
  ASSIGN_OR_RETURN(const int second, CheckAxis("axis2", diagonal.has_axis2() ? diagonal.axis2() : -1, rank));
  if (first == second) return FieldError("axis2", absl::StrCat("is axis ", second, ", as axis1 is"));
  // All offsets beyond the array are equivalent.
  const std::int64_t rows = x.shape[first], columns = x.shape[second];
  const std::int64_t offset = std::clamp(diagonal.offset(), -rows, columns);
  const std::int64_t row = std::max<std::int64_t>(-offset, 0), column = std::max<std::int64_t>(offset, 0);
  Operand view = x;
  view.shape = {};
  view.strides = {};
  for (int i = 0; i < rank; ++i) {
    if (i == first || i == second) continue;
    view.strides[view.shape.rank] = x.strides[i];
    view.shape.Append(x.shape[i]);
  }
  view.strides[view.shape.rank] = x.strides[first] + x.strides[second];
  view.shape.Append(std::max<std::int64_t>(std::min(rows - row, columns - column), 0));
  if (view.shape.Count() > 0) view.offset += row * x.strides[first] + column * x.strides[second];
  return view;
}

absl::StatusOr<Joined> JoinedOf(const OperandList& inputs, std::int32_t axis) {
  const Operand& first = *inputs[0];
  if (first.shape.rank == 0) return FieldError(first.field + ".shape", "rank 0; at least 1 is needed");
  Joined joined;
  ASSIGN_OR_RETURN(joined.axis, CheckAxis("axis", axis, first.shape.rank));
  Shape shape = first.shape;
  for (const Operand* const x : absl::MakeConstSpan(inputs).subspan(1)) {
    RETURN_IF_ERROR(CheckSameType(*x, first.dtype, first.field));
    Shape expected = first.shape;
    if (x->shape.rank == first.shape.rank) expected[joined.axis] = x->shape[joined.axis];
    if (x->shape != expected) {
      return FieldError(x->field + ".shape",
                        absl::StrCat(ToString(x->shape), ", but ", first.field, " is ", ToString(first.shape),
                                     "; they may differ along axis ", joined.axis, " only"));
    }
    shape[joined.axis] += x->shape[joined.axis];
    ASSIGN_OR_RETURN(joined.whole, DenseResult("axis", first.dtype, shape));  // check before it overflows
  }
  ASSIGN_OR_RETURN(joined.whole, DenseResult("axis", first.dtype, shape));
  return joined;
}

Operand WithoutRepeats(const Operand& x) {
  Operand once = x;
  for (int i = 0; i < x.shape.rank; ++i) {
    if (x.strides[i] == 0 && x.shape[i] > 1) once.shape[i] = 1;
  }
  return once;
}

Operand WithRepeats(const Operand& copy, const Operand& x) {
  Operand repeated = copy;
  for (int i = 0; i < x.shape.rank; ++i) {
    if (copy.shape[i] != x.shape[i]) repeated.strides[i] = 0;
  }
  repeated.shape = x.shape;
  return repeated;
}

ConvertedStep CopyOf(const Operand& x) {
  ConvertedStep converted;
  converted.output = {x.dtype, x.shape, static_cast<std::size_t>(x.shape.Count()) * SizeOf(x.dtype)};
  if (const std::optional<TransposeProblem> transpose = TransposeFor(x)) {
    converted.step.problem = *transpose;
  } else {
    converted.step.problem = BitCopy(x);
  }
  Read(x, converted.step);
  return converted;
}

ConvertedStep CastOf(const Operand& x, DType dtype) {
  ConvertedStep converted;
  converted.output = {dtype, x.shape, static_cast<std::size_t>(x.shape.Count()) * SizeOf(dtype)};
  converted.step.problem = MapProblem{.dtype = x.dtype,
                                      .shape = x.shape,
                                      .inputs = {{x.dtype, x.strides}},
                                      .nodes = {{MapOp::kCast, dtype, {0}}},
                                      .out_strides = {}};
  Read(x, converted.step);
  return converted;
}

ConvertedStep CopyInto(const Operand& x, const TensorSpec& whole, const Strides& strides,
                       std::int64_t offset) {
  ConvertedStep converted;
  converted.output = whole;
  // Elements that are contiguous are copied like rows.
  const std::optional<TransposeProblem> transpose =
      strides == RowMajorStrides(x.shape) && x.shape.Count() > 0 ? TransposeFor(x) : std::nullopt;
  if (transpose.has_value()) {
    converted.step.problem = *transpose;
    converted.step.output_offset = static_cast<std::size_t>(offset) * SizeOf(x.dtype);
    Read(x, converted.step);
    return converted;
  }
  MapProblem copy = BitCopy(x);
  copy.out_strides = strides;
  converted.step.problem = std::move(copy);
  converted.step.output_offset = static_cast<std::size_t>(offset) * SizeOf(x.dtype);
  Read(x, converted.step);
  return converted;
}

}  // namespace warpline
