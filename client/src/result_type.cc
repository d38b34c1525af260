#include "client/src/result_type.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

#include "kernels/problem.h"
#include "warpline/array.h"

namespace warpline::client {
namespace {

using Type = std::optional<ArrayType>;

// Nothing if the sizes are absurd.
Type Dense(DType dtype, const Shape& shape) {
  const absl::StatusOr<std::size_t> bytes = ByteSize({.dtype = dtype, .shape = shape});
  if (!bytes.ok()) return std::nullopt;
  return ArrayType{dtype, shape, *bytes};
}

Type TypeOf(const Operand& operand) {
  const bool is_unknown = !operand.resident.empty() && operand.shape.rank == 0;
  if (is_unknown) return std::nullopt;
  return Dense(operand.dtype, operand.shape);
}

template <typename Perm>
Type Transposed(const Type& x, const Perm& perm) {
  if (!x) return std::nullopt;
  const int rank = x->shape.rank;
  Shape shape = x->shape;
  if (perm.empty()) {
    if (rank >= 2) std::swap(shape[rank - 2], shape[rank - 1]);
    return Dense(x->dtype, shape);
  }
  if (static_cast<int>(perm.size()) != rank) return std::nullopt;
  std::array<bool, kMaxRank> seen{};
  for (int i = 0; i < rank; ++i) {
    const int axis = perm[i];
    if (axis < 0 || axis >= rank || std::exchange(seen[static_cast<std::size_t>(axis)], true)) {
      return std::nullopt;
    }
    shape[i] = x->shape[axis];
  }
  return Dense(x->dtype, shape);
}

std::optional<std::int64_t> BroadcastSize(std::int64_t a, std::int64_t b) {
  if (a == b || b == 1) return a;
  if (a == 1) return b;
  return std::nullopt;
}

// Broadcasts the axes before the last `matrix` ones. The result does not have those last axes yet.
std::optional<Shape> BroadcastAxes(const Shape& a, const Shape& b, int matrix) {
  const int rank = std::max(a.rank, b.rank);
  Shape result;
  for (int i = 0; i < rank - matrix; ++i) {
    const auto size_of = [&](const Shape& shape) {
      const int axis = i - (rank - shape.rank);
      return axis < 0 ? 1 : shape[axis];
    };
    const std::optional<std::int64_t> size = BroadcastSize(size_of(a), size_of(b));
    if (!size) return std::nullopt;
    result.Append(*size);
  }
  return result;
}

Type Product(const Type& a, const Type& b, bool trans_a, bool trans_b, std::optional<DType> out) {
  if (!a || !b || a->shape.rank < 2 || b->shape.rank < 2) return std::nullopt;
  const auto size = [](const Shape& x, bool columns) { return x[x.rank - (columns ? 1 : 2)]; };
  if (size(a->shape, !trans_a) != size(b->shape, trans_b)) return std::nullopt;
  std::optional<Shape> shape = BroadcastAxes(a->shape, b->shape, 2);
  if (!shape) return std::nullopt;
  shape->Append(size(a->shape, trans_a));
  shape->Append(size(b->shape, !trans_b));
  return Dense(out.value_or(GemmProblem{.dtype = a->dtype}.OutDType()), *shape);
}

template <typename Axes>
Type Reduced(const Type& x, v1::ReduceOp op, const Axes& axes, bool keepdims, std::optional<DType> out) {
  // The API's numbers are those of ReduceOp plus one.
  const int number = static_cast<int>(op) - 1;
  if (!x || number < 0 || number >= static_cast<int>(kAllReduceOps.size())) return std::nullopt;
  ReduceProblem problem{.op = kAllReduceOps[static_cast<std::size_t>(number)],
                        .dtype = x->dtype,
                        .shape = x->shape,
                        .out_dtype = out};
  const int rank = x->shape.rank;
  if (axes.empty()) problem.axes_mask = (1u << rank) - 1;
  for (const int axis : axes) {
    if (axis < -rank || axis >= rank) return std::nullopt;
    problem.axes_mask |= 1u << (axis < 0 ? axis + rank : axis);
  }
  return Dense(problem.OutDType(), problem.OutputShape(keepdims));
}

Type Sum(const Type& x, const Type& y) {
  if (!x || !y) return std::nullopt;
  const std::optional<Shape> shape = BroadcastAxes(x->shape, y->shape, 0);
  if (!shape) return std::nullopt;
  return Dense(x->dtype, *shape);
}

// False if it is given and no type that we know.
bool ReadType(v1::DataType data_type, std::optional<DType>& dtype) {
  dtype = FromProto(data_type);
  return dtype.has_value() || data_type == v1::DATA_TYPE_UNSPECIFIED;
}

// The i-th input is inputs[i]; those that are not there are unknown.
Type ResultOf(const v1::Step& step, const std::vector<Type>& inputs) {
  const auto input = [&](std::size_t i) { return i < inputs.size() ? inputs[i] : std::nullopt; };
  std::optional<DType> out;
  switch (step.operation_case()) {
    case v1::Step::kTranspose:
      return Transposed(input(0), step.transpose().perm());
    case v1::Step::kGemm: {
      if (!ReadType(step.gemm().out_data_type(), out)) return std::nullopt;
      return Product(input(0), input(1), step.gemm().trans_a(), step.gemm().trans_b(), out);
    }
    case v1::Step::kReduce: {
      const v1::ReduceStep& reduce = step.reduce();
      if (!ReadType(reduce.out_data_type(), out)) return std::nullopt;
      return Reduced(input(0), reduce.op(), reduce.axes(), reduce.keepdims(), out);
    }
    case v1::Step::kCast: {
      out = FromProto(step.cast().data_type());
      if (!out || !input(0)) return std::nullopt;
      return Dense(*out, input(0)->shape);
    }
    case v1::Step::kScale:
      return input(0);
    case v1::Step::kAdd:
      return Sum(input(0), input(1));
    default:  // of a newer API
      return std::nullopt;
  }
}

}  // namespace

Type ResultTypeOf(const TransposeArgs& args) { return Transposed(TypeOf(args.x), args.perm); }

Type ResultTypeOf(const GemmArgs& args) {
  return Product(TypeOf(args.a), TypeOf(args.b), args.trans_a, args.trans_b, args.out_data_type);
}

Type ResultTypeOf(const ReduceArgs& args) {
  return Reduced(TypeOf(args.x), args.op, args.axes, args.keepdims, args.out_data_type);
}

std::vector<Type> ResultTypesOf(const RunArgs& args) {
  std::map<std::string, Type> types;
  for (const auto& [name, operand] : args.inputs) types[name] = TypeOf(operand);
  for (const v1::Step& step : args.program.steps()) {
    std::vector<Type> inputs;
    for (const std::string& name : step.inputs()) {
      const auto found = types.find(name);
      inputs.push_back(found == types.end() ? std::nullopt : found->second);
    }
    // Two steps, or a step and an input, of one name are refused.
    const auto [type, is_new] = types.emplace(step.name(), ResultOf(step, inputs));
    if (!is_new) type->second = std::nullopt;
  }
  std::vector<Type> results;
  for (const std::string& name : args.program.outputs()) {
    const auto found = types.find(name);
    results.push_back(found == types.end() ? std::nullopt : found->second);
  }
  return results;
}

}  // namespace warpline::client
