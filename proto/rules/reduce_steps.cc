#include "proto/rules/reduce_steps.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/field_error.h"
#include "kernels/status_macros.h"
#include "proto/rules/operand_checks.h"
#include "proto/rules/tensor_rules.h"
#include "proto/rules/views.h"

namespace warpline {
namespace {

// Returns a map of one operation on operands of the same shape.
ConvertedStep MapOf(MapOp op, const OperandList& inputs, DType out_dtype) {
  ConvertedStep converted;
  const Operand& first = *inputs[0];
  MapProblem map{.dtype = first.dtype, .shape = first.shape};
  MapNode node{.op = op, .dtype = out_dtype};
  for (const Operand* const input : inputs) {
    node.operands[map.inputs.size()] = static_cast<std::int16_t>(map.inputs.size());
    map.inputs.push_back({input->dtype, input->strides});
    Read(*input, converted.step);
  }
  map.nodes = {node};
  converted.output = {out_dtype, first.shape,
                      static_cast<std::size_t>(first.shape.Count()) * SizeOf(out_dtype)};
  converted.step.problem = std::move(map);
  return converted;
}

absl::StatusOr<Operand> Cast(const Operand& x, DType dtype, EmitStep emit) {
  return emit(CastOf(x, dtype), "", -1);
}

// A reduction of complex numbers, described by its real parts.
struct Parts {
  ReduceProblem problem;  // of the real parts: the same shape and axes
  DType out = DType::kC64;
  Shape out_shape;
};

absl::StatusOr<Parts> CheckParts(const Operand& x, ReduceOptions options) {
  if (options.op == v1::REDUCE_OP_MIN || options.op == v1::REDUCE_OP_MAX ||
      options.op == v1::REDUCE_OP_ARGMIN || options.op == v1::REDUCE_OP_ARGMAX) {
    return FieldError("op",
                      "complex numbers have no order, so there are no min, max, argmin and argmax of them");
  }
  Operand real = x;
  real.dtype = PartOf(x.dtype);
  Parts parts{.problem = {}, .out = x.dtype, .out_shape = {}};
  if (options.out_data_type != v1::DATA_TYPE_UNSPECIFIED) {
    ASSIGN_OR_RETURN(parts.out, CheckDataType("out_data_type", options.out_data_type));
    if (!IsComplex(parts.out)) {
      return FieldError("out_data_type",
                        absl::StrCat(TypeName(parts.out), ": the result is a complex number"));
    }
    options.out_data_type = ToProto(PartOf(parts.out));
  }
  ASSIGN_OR_RETURN(const ConvertedStep checked, ConvertReduce(real, options));
  parts.problem = std::get<ReduceProblem>(checked.step.problem);
  parts.out_shape = checked.output.shape;
  const ReduceOp op = parts.problem.op;
  if (op == ReduceOp::kSum || op == ReduceOp::kProd || op == ReduceOp::kMean) return parts;
  return absl::Status(InField("op", absl::UnimplementedError(absl::StrCat(
                                        std::string(Name(op)), " of complex numbers is not implemented"))));
}

// The shape after folding: neighbouring axes that are all reduced, or all kept, become one, and axes of size
// 1 vanish.
struct Folded {
  Shape shape;
  std::uint32_t reduced = 0;
};
Folded Fold(const ReduceProblem& problem) {
  Folded folded;
  for (int axis = 0; axis < problem.shape.rank; ++axis) {
    const std::int64_t size = problem.shape[axis];
    if (size == 1) continue;
    const int last = folded.shape.rank - 1;
    const bool reduced = problem.IsReduced(axis);
    if (last >= 0 && reduced == ((folded.reduced >> last & 1u) != 0)) {
      folded.shape[last] *= size;
      continue;
    }
    if (reduced) folded.reduced |= 1u << folded.shape.rank;
    folded.shape.Append(size);
  }
  return folded;
}

// `x` must be dense.
absl::StatusOr<Operand> SumOfParts(const Operand& x, const Parts& parts, const std::string& variant,
                                   EmitStep emit) {
  const Folded folded = Fold(parts.problem);
  if (folded.shape.rank == kMaxRank) {
    return FieldError(x.field + ".shape",
                      absl::StrCat(ToString(x.shape),
                                   ": of complex numbers, 8 axes that are reduced and kept "
                                   "by turns are not implemented"));
  }
  ConvertedStep converted;
  ReduceProblem problem = parts.problem;
  problem.shape = folded.shape;
  problem.shape.Append(2);
  problem.axes_mask = folded.reduced;
  problem.row_stride = 0;
  const std::int64_t count = parts.out_shape.Count();
  converted.output = {parts.out, parts.out_shape, static_cast<std::size_t>(count) * SizeOf(parts.out)};
  converted.step.problem = problem;
  Read(x, converted.step);
  return emit(std::move(converted), variant, -1);
}

// Returns the product along the last axis of a dense array with two axes.
absl::StatusOr<Operand> ProductOfRows(Operand x, EmitStep emit) {
  while (x.shape[1] > 1) {
    // Multiply the first half by the second half. With an odd size, the middle element stays as it is.
    const std::int64_t size = x.shape[1], pairs = size / 2, left = size - pairs;
    Operand first = x, second = x, rest = x;
    first.shape[1] = second.shape[1] = pairs;
    second.offset += left * x.strides[1];
    ConvertedStep product = MapOf(MapOp::kMultiply, {&first, &second}, x.dtype);
    TensorSpec whole = product.output;
    whole.shape[1] = left;
    whole.bytes = static_cast<std::size_t>(whole.shape.Count()) * SizeOf(x.dtype);
    const Strides strides = RowMajorStrides(whole.shape);
    std::get<MapProblem>(product.step.problem).out_strides = strides;
    product.output = whole;
    ASSIGN_OR_RETURN(Operand result, emit(std::move(product), "", -1));
    if (left > pairs) {
      rest.shape[1] = 1;
      rest.offset += pairs * x.strides[1];
      ASSIGN_OR_RETURN(result, emit(CopyInto(rest, whole, strides, pairs), "", result.tensor));
    }
    x = result;
  }
  return x;
}

absl::StatusOr<Operand> ProductOf(const Operand& x, const Parts& parts, EmitStep emit) {
  const ReduceProblem& problem = parts.problem;
  // Move the reduced axes to the end.
  Perm perm{};
  Shape rows{1, 1};
  int next = 0;
  for (const bool reduced : {false, true}) {
    for (int axis = 0; axis < x.shape.rank; ++axis) {
      if (problem.IsReduced(axis) != reduced) continue;
      perm[static_cast<std::size_t>(next++)] = static_cast<std::int8_t>(axis);
      rows[reduced ? 1 : 0] *= x.shape[axis];
    }
  }
  Operand matrix = PermuteView(x, perm);
  std::optional<Operand> view = ReshapeView(matrix, rows);
  if (!view.has_value()) {
    ASSIGN_OR_RETURN(matrix, emit(CopyOf(matrix), "", -1));
    view = ReshapeView(matrix, rows);
  }
  Operand result = *view;
  if (rows[1] == 0) {
    ConvertedStep one;
    one.step.problem = MapProblem{.dtype = x.dtype,
                                  .shape = {rows[0], 1},
                                  .inputs = {},
                                  .nodes = {{MapOp::kConstant, x.dtype, {0}}},
                                  .out_strides = {}};
    one.scalars = {{.alpha = {.value = 1}, .beta = {.value = 0}}};
    one.output = {x.dtype, {rows[0], 1}, static_cast<std::size_t>(rows[0]) * SizeOf(x.dtype)};
    ASSIGN_OR_RETURN(result, emit(std::move(one), "", -1));
  } else if (rows[1] == 1) {
    ASSIGN_OR_RETURN(result, emit(CopyOf(result), "", -1));
  } else {
    ASSIGN_OR_RETURN(result, ProductOfRows(result, emit));
  }
  if (parts.out != x.dtype) {
    ASSIGN_OR_RETURN(result, Cast(result, parts.out, emit));
  }
  return *ReshapeView(result, parts.out_shape);
}

}  // namespace

absl::StatusOr<Operand> ReduceSteps(const Operand& x, const ReduceOptions& options,
                                    const std::string& variant, EmitStep emit) {
  if (!IsComplex(x.dtype)) {
    ASSIGN_OR_RETURN(ConvertedStep converted, ConvertReduce(x, options));
    auto& problem = std::get<ReduceProblem>(converted.step.problem);
    if (problem.op == ReduceOp::kProd && !IsFloat(x.dtype) && IsFloat(problem.OutDType())) {
      ASSIGN_OR_RETURN(const Operand floats, Cast(x, problem.OutDType(), emit));
      ASSIGN_OR_RETURN(converted, ConvertReduce(floats, options));
    }
    return emit(std::move(converted), variant, -1);
  }
  ASSIGN_OR_RETURN(const Parts parts, CheckParts(x, options));
  Operand dense = x;
  if (!IsDense(x)) {
    ASSIGN_OR_RETURN(dense, emit(CopyOf(x), "", -1));
    dense.field = x.field;
  }
  if (parts.problem.op != ReduceOp::kProd) return SumOfParts(dense, parts, variant, emit);
  if (!variant.empty() && variant != "auto") {
    return FieldError("variant", absl::StrCat("\"", variant, "\"; products of complex numbers have none"));
  }
  // Compute in the wider of the two types.
  if (SizeOf(parts.out) > SizeOf(x.dtype)) {
    ASSIGN_OR_RETURN(dense, Cast(dense, parts.out, emit));
    dense.field = x.field;
  }
  return ProductOf(dense, parts, emit);
}

}  // namespace warpline
