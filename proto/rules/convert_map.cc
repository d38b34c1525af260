// The rules of maps: which operations take which types, and what each node reads.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "kernels/field_error.h"
#include "kernels/status_macros.h"
#include "proto/rules/broadcast.h"
#include "proto/rules/convert_step.h"
#include "proto/rules/known_fields.h"
#include "proto/rules/operand_checks.h"
#include "proto/rules/tensor_rules.h"

namespace warpline {
namespace {

std::string NameOf(MapOp op) { return std::string(Name(op)); }

// Returns the names of the data types in a set, as in "i8, f16".
std::string NamesIn(unsigned set) {
  std::string names;
  for (DType dtype : kAllDTypes) {
    if (Has(set, dtype)) absl::StrAppend(&names, names.empty() ? "" : ", ", TypeName(dtype));
  }
  return names;
}

// Returns true for operations that compare. Complex numbers have no order.
bool NeedsOrder(MapOp op) {
  return (op >= MapOp::kMinimum && op <= MapOp::kClip) || (op >= MapOp::kLess && op <= MapOp::kGreaterEqual);
}

// Returns whether a message has the field. -0.0 counts as given, and so does its token.
bool IsGiven(double content) { return std::bit_cast<std::uint64_t>(content) != 0; }

bool FitsInto(DType dtype, std::int64_t value) {
  if (dtype == DType::kBool) return value == 0 || value == 1;
  if (dtype == DType::kU64) return true;
  const auto bits = static_cast<int>(SizeOf(dtype)) * 8;
  if (bits == 64) return true;
  const std::int64_t range = std::int64_t{1} << (IsSigned(dtype) ? bits - 1 : bits);
  return value < range && value >= (IsSigned(dtype) ? -range : 0);
}

// Checks the nodes of one map in order, and builds its problem.
class MapRules {
 public:
  MapRules(const OperandList& inputs, MapProblem& problem, std::vector<ReadScalars>& scalars)
      : problem_(problem), scalars_(scalars), count_(inputs.size()) {
    for (const Operand* input : inputs) types_.push_back(input->dtype);
    used_.resize(inputs.size());
  }

  absl::Status Add(const v1::MapNode& node, ScalarReader read) {
    ASSIGN_OR_RETURN(const MapOp op, CheckOp(node.op()));
    MapNode checked{.op = op};
    RETURN_IF_ERROR(CheckOperands(op, node, checked));
    if (op == MapOp::kConstant && node.data_type() == v1::DATA_TYPE_UNSPECIFIED) return AddUntyped(node);
    RETURN_IF_ERROR(TypeConstants(op, node, read));
    ASSIGN_OR_RETURN(checked.dtype, RowOf(op).operands == 0
                                        ? CheckDataType("data_type", node.data_type(), IsMapType)
                                        : TypeOfResult(op, node));
    if (op == MapOp::kConstant) {
      RETURN_IF_ERROR(TakeConstant(checked.dtype, node, read));
      checked.operands[0] = static_cast<std::int16_t>(scalars_.size() - 1);
    } else if (op == MapOp::kIndex) {
      RETURN_IF_ERROR(TakeAxis(node, checked));
    } else if (IsGiven(node.real()) || IsGiven(node.imag()) || node.integer() != 0) {
      return FieldError(node.integer() != 0    ? "integer"
                        : IsGiven(node.real()) ? "real"
                                               : "imag",
                        absl::StrCat("given, but ", NameOf(op), " is not a constant"));
    }
    if (op == MapOp::kPow && IsInteger(checked.dtype)) RETURN_IF_ERROR(CheckPower(node.operands(1)));
    types_.push_back(checked.dtype);
    used_.push_back(false);
    problem_.nodes.push_back(checked);
    return absl::OkStatus();
  }

  // Adds the nodes that are results in addition to the last one. Call it after all nodes have been added.
  absl::Status AddFurther(const v1::MapStep& map) {
    for (int i = 0; i < map.outputs_size(); ++i) {
      const std::string field = absl::StrCat("outputs[", i, "].node");
      const std::int32_t node = map.outputs(i).node();
      const auto last = static_cast<std::int32_t>(problem_.nodes.size()) - 1;
      if (node < 0 || node > last)
        return FieldError(field, absl::StrCat(node, " is outside of [0, ", last, "]"));
      if (node == last) {
        return FieldError(field, absl::StrCat(node, " is the last node, which gives the result of the step"));
      }
      const auto number = static_cast<std::int16_t>(node);
      if (std::find(problem_.further.begin(), problem_.further.end(), number) != problem_.further.end()) {
        return FieldError(field, absl::StrCat(node, " is named twice"));
      }
      problem_.further.push_back(number);
      used_[count_ + static_cast<std::size_t>(node)] = true;
    }
    return absl::OkStatus();
  }

  absl::Status CheckAllUsed() const {
    // All other constants have got their data type from the nodes that read them.
    for (const Untyped& constant : untyped_) {
      if (!used_[constant.value] && constant.value + 1 != used_.size()) continue;
      return FieldError(absl::StrCat("nodes[", constant.value - count_, "].data_type"), "missing");
    }
    for (std::size_t i = 0; i + 1 < used_.size(); ++i) {
      if (used_[i]) continue;
      if (i < count_) return FieldError(absl::StrCat("inputs[", i, "]"), "no node reads it");
      return FieldError(absl::StrCat("nodes[", i - count_, "]"), "no later node reads it");
    }
    return absl::OkStatus();
  }

 private:
  // A constant without a data type. It gets the type of the other operands.
  struct Untyped {
    std::size_t value = 0;
    const v1::MapNode* node = nullptr;
  };

  absl::Status AddUntyped(const v1::MapNode& node) {
    untyped_.push_back({types_.size(), &node});
    MapNode constant{.op = MapOp::kConstant};
    constant.operands[0] = static_cast<std::int16_t>(scalars_.size());
    scalars_.emplace_back();
    types_.push_back(DType::kF32);
    used_.push_back(false);
    problem_.nodes.push_back(constant);
    return absl::OkStatus();
  }

  std::vector<Untyped>::iterator FindUntyped(std::int32_t value) {
    return std::find_if(untyped_.begin(), untyped_.end(),
                        [&](const Untyped& each) { return each.value == static_cast<std::size_t>(value); });
  }

  // Sets the data types of constants among the operands of a node.
  absl::Status TypeConstants(MapOp op, const v1::MapNode& node, ScalarReader read) {
    const int first = op == MapOp::kWhere ? 1 : 0;
    std::optional<DType> dtype;
    for (int i = first; i < node.operands_size() && !dtype.has_value(); ++i) {
      if (FindUntyped(node.operands(i)) == untyped_.end()) dtype = TypeOf(node.operands(i));
    }
    for (int i = 0; i < node.operands_size(); ++i) {
      const auto found = FindUntyped(node.operands(i));
      if (found == untyped_.end()) continue;
      const std::optional<DType> given = i < first ? DType::kBool : dtype;
      if (!given.has_value()) {
        return FieldError(absl::StrCat("operands[", i, "]"),
                          "a constant without a data type, beside no operand that has one");
      }
      const std::size_t value = found->value;
      RETURN_IF_ERROR(
          Within(absl::StrCat("operands[", i, "]"), TakeUntyped(value - count_, *given, *found->node, read)));
      types_[value] = *given;
      problem_.nodes[value - count_].dtype = *given;
      untyped_.erase(found);
    }
    return absl::OkStatus();
  }

  absl::Status TakeUntyped(std::size_t index, DType dtype, const v1::MapNode& node, ScalarReader read) {
    const auto number = static_cast<std::size_t>(problem_.nodes[index].operands[0]);
    ReadScalars& scalars = scalars_[number];
    if (!Has(RowOf(MapOp::kConstant).takes, dtype)) {
      return FieldError("data_type", absl::StrCat("no constant is ", TypeName(dtype)));
    }
    if (Has(kBools | kInts, dtype)) {
      if (IsGiven(node.real())) {
        return FieldError(
            "real", absl::StrCat("a fraction beside ", TypeName(dtype), ": cast what is ", TypeName(dtype),
                                 " to a floating-point type, or write a whole number (`integer`)"));
      }
      return TakeInteger(dtype, node, scalars);
    }
    if (!Has(kComplex, dtype) && IsGiven(node.imag())) {
      return FieldError("imag", absl::StrCat(TypeName(dtype), " has no imaginary part"));
    }
    if (node.integer() != 0) {
      if (IsGiven(node.real()) || IsGiven(node.imag())) {
        return FieldError("integer", "given beside `real` or `imag`: a constant is one number");
      }
      scalars.alpha = {.value = static_cast<double>(node.integer())};
      return absl::OkStatus();
    }
    return TakeReal(node, read, scalars);
  }

  static absl::Status TakeInteger(DType dtype, const v1::MapNode& node, ReadScalars& scalars) {
    if (!FitsInto(dtype, node.integer())) {
      return FieldError("integer", absl::StrCat(node.integer(), " is outside of ", TypeName(dtype)));
    }
    scalars.integer = node.integer();
    return absl::OkStatus();
  }
  static absl::Status TakeReal(const v1::MapNode& node, ScalarReader read, ReadScalars& scalars) {
    if (IsGiven(node.real())) {
      ASSIGN_OR_RETURN(scalars.alpha, read("real", node.real()));
    }
    if (IsGiven(node.imag())) {
      ASSIGN_OR_RETURN(scalars.beta, read("imag", node.imag()));
    }
    return absl::OkStatus();
  }

  static absl::StatusOr<MapOp> CheckOp(v1::MapOp op) {
    // Each number of the API's enumeration is the MapOp value plus one; a test compares the names.
    static_assert(kMapOps.size() == v1::MapOp_MAX);
    if (op > v1::MAP_OP_UNSPECIFIED && op <= v1::MapOp_MAX) return static_cast<MapOp>(op - 1);
    if (op == v1::MAP_OP_UNSPECIFIED) return FieldError("op", "missing");
    return UnknownNumber("op", op, absl::StrCat("1 to ", static_cast<int>(v1::MapOp_MAX)));
  }

  absl::Status CheckOperands(MapOp op, const v1::MapNode& node, MapNode& checked) {
    const int wanted = RowOf(op).operands;
    if (node.operands_size() != wanted) {
      return FieldError("operands",
                        absl::StrCat("has ", node.operands_size(), "; ", NameOf(op), " reads ", wanted));
    }
    for (int i = 0; i < wanted; ++i) {
      const std::int32_t value = node.operands(i);
      if (value < 0 || static_cast<std::size_t>(value) >= types_.size()) {
        return FieldError(absl::StrCat("operands[", i, "]"),
                          absl::StrCat(value, "; ", count_, " inputs and the earlier nodes are ",
                                       types_.empty() ? "none" : absl::StrCat("0 to ", types_.size() - 1)));
      }
      checked.operands[static_cast<std::size_t>(i)] = static_cast<std::int16_t>(value);
      used_[static_cast<std::size_t>(value)] = true;
    }
    return absl::OkStatus();
  }

  DType TypeOf(std::int32_t value) const { return types_[static_cast<std::size_t>(value)]; }

  absl::StatusOr<DType> TypeOfResult(MapOp op, const v1::MapNode& node) const {
    const int first = op == MapOp::kWhere ? 1 : 0;
    if (first == 1 && TypeOf(node.operands(0)) != DType::kBool) {
      return FieldError("operands[0]", absl::StrCat("the condition is ", TypeName(TypeOf(node.operands(0))),
                                                    "; it must be bool"));
    }
    const DType dtype = TypeOf(node.operands(first));
    for (int i = first + 1; i < node.operands_size(); ++i) {
      const DType other = TypeOf(node.operands(i));
      if (other == dtype) continue;
      return FieldError(absl::StrCat("operands[", i, "]"),
                        absl::StrCat(TypeName(other), ", but operands[", first, "] is ", TypeName(dtype),
                                     ": one of them must be cast"));
    }
    RETURN_IF_ERROR(CheckTypeOf(op, dtype, absl::StrCat("operands[", first, "]")));
    if (op == MapOp::kCast) return CheckCast(dtype, node.data_type());
    const DType result = ResultOf(op, dtype);
    if (node.data_type() != v1::DATA_TYPE_UNSPECIFIED && node.data_type() != ToProto(result)) {
      ASSIGN_OR_RETURN(const DType given, CheckDataType("data_type", node.data_type()));
      return FieldError("data_type", absl::StrCat(TypeName(given), ", but ", NameOf(op), " of ",
                                                  TypeName(dtype), " gives ", TypeName(result)));
    }
    return result;
  }

  static absl::Status CheckTypeOf(MapOp op, DType dtype, const std::string& field) {
    const unsigned takes = RowOf(op).takes;
    if (Has(takes, dtype)) return absl::OkStatus();
    if (Has(kComplex, dtype) && (takes & kFloats) != 0 && !NeedsOrder(op)) {
      return InField(field, absl::UnimplementedError(
                                absl::StrCat(NameOf(op), " of complex numbers is not implemented")));
    }
    return FieldError(
        field, absl::StrCat(NameOf(op), " does not take ", TypeName(dtype), "; supported: ", NamesIn(takes)));
  }

  static absl::StatusOr<DType> CheckCast(DType from, v1::DataType data_type) {
    ASSIGN_OR_RETURN(const DType to, CheckDataType("data_type", data_type, IsMapType));
    const unsigned takes = RowOf(MapOp::kCast).takes;
    if (!Has(takes, to)) {
      return FieldError("data_type",
                        absl::StrCat("nothing is cast to ", TypeName(to), "; supported: ", NamesIn(takes)));
    }
    if (Has(kComplex, from) && !Has(kComplex | kBools, to)) {
      return FieldError("data_type", absl::StrCat(TypeName(from), " is not cast to ", TypeName(to),
                                                  "; real, imag and abs give real numbers"));
    }
    return to;
  }

  absl::Status TakeConstant(DType dtype, const v1::MapNode& node, ScalarReader read) {
    if (!Has(RowOf(MapOp::kConstant).takes, dtype)) {
      return FieldError("data_type", absl::StrCat("no constant is ", TypeName(dtype),
                                                  "; supported: ", NamesIn(RowOf(MapOp::kConstant).takes)));
    }
    ReadScalars& scalars = scalars_.emplace_back();
    const bool whole = Has(kBools | kInts, dtype);
    if (whole && IsGiven(node.real()))
      return FieldError("real", absl::StrCat(TypeName(dtype), " takes `integer`"));
    if (!whole && node.integer() != 0) {
      return FieldError("integer", absl::StrCat(TypeName(dtype), " takes `real`"));
    }
    if (!Has(kComplex, dtype) && IsGiven(node.imag())) {
      return FieldError("imag", absl::StrCat(TypeName(dtype), " has no imaginary part"));
    }
    return whole ? TakeInteger(dtype, node, scalars) : TakeReal(node, read, scalars);
  }

  absl::Status TakeAxis(const v1::MapNode& node, MapNode& checked) const {
    if (checked.dtype != DType::kI32 && checked.dtype != DType::kI64) {
      return FieldError("data_type",
                        absl::StrCat("no index is ", TypeName(checked.dtype), "; supported: i32, i64"));
    }
    if (IsGiven(node.real()) || IsGiven(node.imag())) {
      return FieldError(IsGiven(node.real()) ? "real" : "imag",
                        "given, but an index takes `integer`, its axis");
    }
    const std::int64_t rank = problem_.shape.rank;
    const std::int64_t axis = node.integer() < 0 ? node.integer() + rank : node.integer();
    if (axis < 0 || axis >= rank) {
      return FieldError("integer",
                        absl::StrCat("axis ", node.integer(), " is outside of [", -rank, ", ", rank, ")"));
    }
    if (checked.dtype == DType::kI32 && problem_.shape[static_cast<int>(axis)] > (std::int64_t{1} << 31)) {
      return FieldError("data_type",
                        absl::StrCat("i32, but axis ", axis, " has ", problem_.shape[static_cast<int>(axis)],
                                     " elements; i64 has all of their positions"));
    }
    checked.operands[0] = static_cast<std::int16_t>(axis);
    return absl::OkStatus();
  }

  // Checks that an integer power is not negative, if it is a constant.
  absl::Status CheckPower(std::int32_t value) const {
    if (static_cast<std::size_t>(value) < count_) return absl::OkStatus();
    const MapNode& power = problem_.nodes[static_cast<std::size_t>(value) - count_];
    if (power.op != MapOp::kConstant || !IsSigned(power.dtype)) return absl::OkStatus();
    const std::int64_t exponent = *scalars_[static_cast<std::size_t>(power.operands[0])].integer;
    if (exponent >= 0) return absl::OkStatus();
    return FieldError("operands[1]", absl::StrCat("the power of an integer is ", exponent,
                                                  "; the least is 0: cast to a floating-point type before"));
  }

  MapProblem& problem_;
  std::vector<ReadScalars>& scalars_;
  const std::size_t count_;   // number of inputs
  std::vector<DType> types_;  // of values: inputs, then nodes
  std::vector<bool> used_;
  std::vector<Untyped> untyped_;
};

}  // namespace

absl::StatusOr<ConvertedStep> ConvertMap(const OperandList& inputs, const v1::MapStep& map,
                                         ScalarReader scalars) {
  ConvertedStep converted;
  MapProblem problem;
  ASSIGN_OR_RETURN(problem.shape, MapShape(inputs, map));
  MapRules rules(inputs, problem, converted.scalars);
  for (int i = 0; i < map.nodes_size(); ++i) {
    const absl::Status status = rules.Add(map.nodes(i), scalars);
    if (!status.ok()) return Within(absl::StrCat("nodes[", i, "]"), status);
  }
  RETURN_IF_ERROR(rules.AddFurther(map));
  RETURN_IF_ERROR(rules.CheckAllUsed());
  problem.dtype = inputs.empty() ? problem.OutDType() : inputs[0]->dtype;
  for (const Operand* input : inputs) {
    problem.inputs.push_back({input->dtype, BroadcastStrides(*input, problem.shape.rank)});
    Read(*input, converted.step);
  }
  const std::string field = map.shape_size() > 0 || inputs.empty() ? "shape" : inputs[0]->field + ".shape";
  ASSIGN_OR_RETURN(converted.output, DenseResult(field, problem.OutDType(), problem.shape));
  for (int i = 1; i < problem.ResultCount(); ++i) {
    ASSIGN_OR_RETURN(converted.further.emplace_back(),
                     DenseResult(field, problem.ResultDType(i), problem.shape));
  }
  converted.step.problem = std::move(problem);
  return converted;
}

absl::Status CheckMapCounts(std::size_t inputs, const v1::MapStep& map) {
  if (inputs > kMaxMapInputs) {
    return FieldError("inputs", absl::StrCat("has ", inputs, " names; a map reads at most ", kMaxMapInputs));
  }
  if (map.nodes_size() == 0 || map.nodes_size() > kMaxMapNodes) {
    return FieldError("nodes", absl::StrCat("has ", map.nodes_size(), "; a map has 1 to ", kMaxMapNodes));
  }
  return absl::OkStatus();
}

}  // namespace warpline
