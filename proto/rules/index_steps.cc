#include "proto/rules/index_steps.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/field_error.h"
#include "kernels/status_macros.h"
#include "proto/rules/operand_checks.h"
#include "proto/rules/views.h"

namespace warpline {
namespace {

// Along an empty axis, no index is in range.
absl::Status CheckAxisHasElements(const Operand& x, int axis, const Shape& result) {
  if (x.shape[axis] > 0 || result.Count() == 0) return absl::OkStatus();
  return FieldError(x.field + ".shape", absl::StrCat(ToString(x.shape), "; axis ", axis,
                                                     " has no elements that an index could name"));
}

absl::Status CheckSameRank(const Operand& x, const Operand& indices) {
  if (x.shape.rank == indices.shape.rank) return absl::OkStatus();
  return FieldError(indices.field + ".shape",
                    absl::StrCat("rank ", indices.shape.rank, ", but ", x.field, " has rank ", x.shape.rank));
}

// Returns the strides of an operand, with 0 along axes to which it is broadcast.
Strides RepeatedStrides(const Operand& x) {
  Strides strides = x.strides;
  for (int i = 0; i < x.shape.rank; ++i) {
    if (x.shape[i] == 1) strides[i] = 0;
  }
  return strides;
}

// Adds a take of x along an axis, with dense indices.
absl::StatusOr<Operand> EmitTake(const Operand& x, const Operand& places, int along,
                                 const TakeProblem& problem, const std::string& variant, EmitStep emit) {
  RETURN_IF_ERROR(CheckAxisHasElements(x, along, problem.shape));
  ConvertedStep converted;
  ASSIGN_OR_RETURN(converted.output, DenseResult(places.field + ".shape", x.dtype, problem.shape));
  converted.step.problem = problem;
  Read(x, converted.step);
  Read(places, converted.step);
  return emit(std::move(converted), variant, -1);
}

}  // namespace

absl::Status CheckIndices(const Operand& indices) {
  return CheckTakes(indices, "an index",
                    [](DType dtype) { return dtype == DType::kI32 || dtype == DType::kI64; });
}

absl::StatusOr<Operand> Dense(const Operand& x, EmitStep emit) {
  if (IsDense(x)) return x;
  ASSIGN_OR_RETURN(Operand copy, emit(CopyOf(x), "", -1));
  copy.field = x.field;
  return copy;
}

absl::StatusOr<Operand> TakeSteps(const Operand& x, const Operand& indices, std::int32_t axis,
                                  const std::string& variant, EmitStep emit) {
  RETURN_IF_ERROR(CheckIndices(indices));
  ASSIGN_OR_RETURN(const int along, CheckAxis("axis", axis, x.shape.rank));
  if (x.shape.rank - 1 + indices.shape.rank > kMaxRank) {
    return FieldError(indices.field + ".shape",
                      absl::StrCat("rank ", indices.shape.rank, "; with the other axes of ", x.field,
                                   " the result has more than ", kMaxRank));
  }
  ASSIGN_OR_RETURN(const Operand places, Dense(indices, emit));
  TakeProblem problem{.dtype = x.dtype,
                      .index_dtype = indices.dtype,
                      .shape = {},
                      .axis_size = x.shape[along],
                      .axis_stride = x.shape[along] > 1 ? x.strides[along] : 0};
  const Strides of_indices = RowMajorStrides(places.shape);
  const auto append = [&](std::int64_t size, std::int64_t x_stride, std::int64_t index_stride) {
    problem.x_strides[problem.shape.rank] = x_stride;
    problem.index_strides[problem.shape.rank] = index_stride;
    problem.shape.Append(size);
  };
  for (int i = 0; i < x.shape.rank; ++i) {
    if (i != along) {
      append(x.shape[i], x.shape[i] == 1 ? 0 : x.strides[i], 0);
      continue;
    }
    for (int k = 0; k < places.shape.rank; ++k) append(places.shape[k], 0, of_indices[k]);
  }
  return EmitTake(x, places, along, problem, variant, emit);
}

absl::StatusOr<Operand> TakeAlongAxisSteps(const Operand& x, const Operand& indices, std::int32_t axis,
                                           const std::string& variant, EmitStep emit) {
  RETURN_IF_ERROR(CheckIndices(indices));
  RETURN_IF_ERROR(CheckSameRank(x, indices));
  ASSIGN_OR_RETURN(const int along, CheckAxis("axis", axis, x.shape.rank));
  ASSIGN_OR_RETURN(const Operand places, Dense(indices, emit));
  TakeProblem problem{.dtype = x.dtype,
                      .index_dtype = indices.dtype,
                      .shape = places.shape,
                      .x_strides = RepeatedStrides(x),
                      .index_strides = RepeatedStrides(places),
                      .axis_size = x.shape[along],
                      .axis_stride = x.shape[along] > 1 ? x.strides[along] : 0};
  problem.x_strides[along] = 0;
  for (int i = 0; i < x.shape.rank; ++i) {
    if (i == along) continue;
    ASSIGN_OR_RETURN(problem.shape[i], BroadcastSize(indices, i, indices.shape[i], x.shape[i], "the"));
  }
  return EmitTake(x, places, along, problem, variant, emit);
}

absl::StatusOr<Operand> CompressSteps(const Operand& x, const Operand& mask, const std::string& variant,
                                      EmitStep emit) {
  RETURN_IF_ERROR(CheckSameType(mask, DType::kBool, "a mask"));
  const int axes = mask.shape.rank;
  bool fits = axes >= 1 && axes <= x.shape.rank;
  for (int i = 0; i < axes && fits; ++i) fits = mask.shape[i] == x.shape[i];
  if (!fits) {
    return FieldError(mask.field + ".shape",
                      absl::StrCat(ToString(mask.shape), "; it must have the first axes of ", x.field, ", ",
                                   ToString(x.shape)));
  }
  ASSIGN_OR_RETURN(const Operand dense, Dense(x, emit));
  ASSIGN_OR_RETURN(const Operand bytes, Dense(mask, emit));
  CompressProblem problem{.dtype = x.dtype, .rows = mask.shape.Count(), .width = 1};
  Shape shape{problem.rows};
  for (int i = axes; i < x.shape.rank; ++i) {
    shape.Append(x.shape[i]);
    problem.width *= x.shape[i];
  }
  ConvertedStep converted;
  ASSIGN_OR_RETURN(converted.output, DenseResult(x.field + ".shape", x.dtype, shape));
  converted.further = {TensorSpec{DType::kI64, {}, sizeof(std::int64_t)}};
  converted.step.problem = problem;
  Read(dense, converted.step);
  Read(bytes, converted.step);
  ASSIGN_OR_RETURN(Operand result, emit(std::move(converted), variant, -1));
  result.count_tensor = result.tensor + 1;
  return result;
}

absl::StatusOr<Operand> SetSliceSteps(const Operand& x, const Operand& values, const v1::SetSliceStep& set,
                                      EmitStep emit) {
  RETURN_IF_ERROR(CheckSameType(values, x.dtype, x.field));
  ASSIGN_OR_RETURN(const TensorSpec whole, DenseResult(x.field + ".shape", x.dtype, x.shape));
  v1::SliceStep slice;
  *slice.mutable_starts() = set.starts();
  *slice.mutable_ends() = set.ends();
  *slice.mutable_axes() = set.axes();
  *slice.mutable_steps() = set.steps();
  Operand dense = x;
  dense.strides = RowMajorStrides(x.shape);
  dense.offset = 0;
  ASSIGN_OR_RETURN(const Operand part, SliceView(dense, slice));
  const absl::StatusOr<Operand> put = BroadcastView(values, part.shape);
  if (!put.ok()) {
    return FieldError(values.field + ".shape",
                      absl::StrCat(ToString(values.shape), " cannot be broadcast to ", ToString(part.shape),
                                   ", the shape of the slice"));
  }
  ASSIGN_OR_RETURN(const Operand result, emit(CopyInto(x, whole, dense.strides, 0), "", -1));
  if (part.shape.Count() == 0) return result;
  return emit(CopyInto(*put, whole, part.strides, part.offset), "", result.tensor);
}

absl::StatusOr<Operand> PutAlongAxisSteps(const Operand& x, const Operand& indices, const Operand& values,
                                          std::int32_t axis, const std::string& variant, EmitStep emit) {
  RETURN_IF_ERROR(CheckIndices(indices));
  RETURN_IF_ERROR(CheckSameRank(x, indices));
  RETURN_IF_ERROR(CheckSameType(values, x.dtype, x.field));
  ASSIGN_OR_RETURN(const int along, CheckAxis("axis", axis, x.shape.rank));
  PutProblem problem{.dtype = x.dtype,
                     .index_dtype = indices.dtype,
                     .shape = x.shape,
                     .axis = along,
                     .index_shape = x.shape};
  problem.index_shape[along] = indices.shape[along];
  for (int i = 0; i < x.shape.rank; ++i) {
    if (i == along || indices.shape[i] == x.shape[i] || indices.shape[i] == 1) continue;
    return FieldError(indices.field + ".shape", absl::StrCat("axis ", i, " has size ", indices.shape[i],
                                                             ", but that of ", x.field, " is ", x.shape[i]));
  }
  const int more = x.shape.rank - values.shape.rank;
  for (int i = 0; i < x.shape.rank; ++i) {
    const std::int64_t size = i < more ? 1 : values.shape[i - more];
    if (more < 0 || (size != 1 && size != problem.index_shape[i])) {
      return FieldError(values.field + ".shape",
                        absl::StrCat(ToString(values.shape), " cannot be broadcast to the indices, ",
                                     ToString(problem.index_shape)));
    }
    problem.value_strides[i] = size == 1 ? 0 : values.strides[i - more];
  }
  ASSIGN_OR_RETURN(const Operand dense, Dense(x, emit));
  ASSIGN_OR_RETURN(const Operand places, Dense(indices, emit));
  problem.index_strides = RepeatedStrides(places);
  RETURN_IF_ERROR(DenseResult(indices.field + ".shape", DType::kI64, problem.index_shape).status());
  RETURN_IF_ERROR(CheckAxisHasElements(x, along, problem.index_shape));
  ConvertedStep converted;
  ASSIGN_OR_RETURN(converted.output, DenseResult(x.field + ".shape", x.dtype, x.shape));
  converted.step.problem = problem;
  Read(dense, converted.step);
  Read(places, converted.step);
  Read(values, converted.step);
  return emit(std::move(converted), variant, -1);
}

}  // namespace warpline
