#include "client/src/expression_index.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "kernels/shape.h"
#include "kernels/status_macros.h"

namespace warpline::client {
namespace {

constexpr std::int64_t kFirst = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max();

// Takes ranges, where a place is a range of one element. Axes behind an ellipsis are counted from the end.
v1::SliceStep SliceOf(const std::vector<IndexPart>& parts) {
  v1::SliceStep slice;
  int axis = 0;
  for (const IndexPart& part : parts) {
    if (part.is_ellipsis) {
      axis = -static_cast<int>(&parts.back() - &part);
      continue;
    }
    slice.add_axes(axis++);
    if (part.place.has_value()) {
      slice.add_starts(*part.place);
      slice.add_ends(*part.place == -1 || *part.place == kLast ? kLast : *part.place + 1);
      slice.add_steps(1);
      continue;
    }
    slice.add_starts(part.start.value_or(part.step > 0 ? 0 : kLast));
    slice.add_ends(part.end.value_or(part.step > 0 ? kLast : kFirst));
    slice.add_steps(part.step);
  }
  return slice;
}

}  // namespace

absl::StatusOr<Tree> Indexed(ExpressionProgram& program, std::size_t at, const std::string& x,
                             const std::vector<IndexPart>& parts) {
  const auto is_ellipsis = [](const IndexPart& part) { return part.is_ellipsis; };
  if (std::count_if(parts.begin(), parts.end(), is_ellipsis) > 1) {
    return ColumnError(at, "an index has at most one ...");
  }
  v1::Step step;
  step.add_inputs(x);
  *step.mutable_slice() = SliceOf(parts);
  const std::vector<int> axes(step.slice().axes().begin(), step.slice().axes().end());
  ASSIGN_OR_RETURN(const Tree ranges, program.Add(at, std::move(step), "slice"));
  const bool has_places =
      std::any_of(parts.begin(), parts.end(), [](const IndexPart& part) { return part.place.has_value(); });
  if (!has_places) return ranges;
  // The axes of places have one element now, and go.
  ASSIGN_OR_RETURN(const TensorSpec given, program.TypeOf(at, "an index that is a number", x));
  ASSIGN_OR_RETURN(const TensorSpec taken, program.TypeOf(at, "an index that is a number", ranges.name));
  std::vector<bool> goes(static_cast<std::size_t>(taken.shape.rank));
  std::size_t number = 0;
  for (const IndexPart& part : parts) {
    if (part.is_ellipsis) continue;
    int axis = axes[number++];
    if (axis < 0) axis += taken.shape.rank;
    if (!part.place.has_value()) continue;
    const std::int64_t size = given.shape[axis];
    if (*part.place < -size || *part.place >= size) {
      return ColumnError(part.at, absl::StrCat("index ", *part.place, " is outside of [", -size, ", ", size,
                                               "), the places of axis ", axis));
    }
    goes[static_cast<std::size_t>(axis)] = true;
  }
  v1::Step reshape;
  reshape.add_inputs(ranges.name);
  reshape.mutable_reshape();
  for (int axis = 0; axis < taken.shape.rank; ++axis) {
    if (!goes[static_cast<std::size_t>(axis)]) reshape.mutable_reshape()->add_shape(taken.shape[axis]);
  }
  return program.Add(at, std::move(reshape), "reshape");
}

absl::StatusOr<Tree> Indexed(ExpressionProgram& program, std::size_t at, const std::string& x,
                             const std::string& index) {
  ASSIGN_OR_RETURN(const TensorSpec type, program.TypeOf(at, "an index that is an array", index));
  v1::Step step;
  step.add_inputs(x);
  step.add_inputs(index);
  if (type.dtype == DType::kBool) {
    step.mutable_compress();
    return program.Add(at, std::move(step), "compress");
  }
  step.mutable_take();
  return program.Add(at, std::move(step), "take");
}

}  // namespace warpline::client
