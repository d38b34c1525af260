#include "client/src/expression_tree.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "kernels/problem.h"

namespace warpline::client {
namespace {

// An operator must come before its own prefixes: "<<" before "<". The precedence levels are Python's.
constexpr std::array kInfix = {
    InfixOperator{"==", MapOp::kEqual, 0},
    InfixOperator{"!=", MapOp::kNotEqual, 0},
    InfixOperator{"<<", MapOp::kBitwiseLeftShift, 4},
    InfixOperator{">>", MapOp::kBitwiseRightShift, 4},
    InfixOperator{"<=", MapOp::kLessEqual, 0},
    InfixOperator{">=", MapOp::kGreaterEqual, 0},
    InfixOperator{"<", MapOp::kLess, 0},
    InfixOperator{">", MapOp::kGreater, 0},
    InfixOperator{"|", MapOp::kBitwiseOr, 1},
    InfixOperator{"^", MapOp::kBitwiseXor, 2},
    InfixOperator{"&", MapOp::kBitwiseAnd, 3},
    InfixOperator{"+", MapOp::kAdd, 5},
    InfixOperator{"-", MapOp::kSubtract, 5},
    InfixOperator{"//", MapOp::kFloorDivide, kTightestLevel},
    InfixOperator{"*", MapOp::kMultiply, kTightestLevel},
    InfixOperator{"/", MapOp::kDivide, kTightestLevel},
    InfixOperator{"%", MapOp::kRemainder, kTightestLevel},
};

// Makes the nodes of a tree in the order in which they can be computed.
class MapWriter {
 public:
  explicit MapWriter(v1::Step& step) : step_(step) {}

  void CollectInputs(const Tree& tree) {
    if (!tree.name.empty() && InputNamed(tree.name) == step_.inputs_size()) step_.add_inputs(tree.name);
    for (const Tree& operand : tree.operands) CollectInputs(operand);
  }

  // Returns the index of the value.
  int Write(const Tree& tree) {
    if (!tree.name.empty()) return InputNamed(tree.name);
    v1::MapNode node;
    for (const Tree& operand : tree.operands) node.add_operands(Write(operand));
    if (tree.row != nullptr) {
      node.set_op(static_cast<v1::MapOp>(tree.row - kMapOps.data() + 1));
    } else {
      node.set_op(v1::MAP_OP_CONSTANT);
      if (tree.integer.has_value()) {
        node.set_integer(*tree.integer);
      } else {
        node.set_real(tree.real);
      }
    }
    *step_.mutable_map()->add_nodes() = std::move(node);
    return step_.inputs_size() + step_.map().nodes_size() - 1;
  }

 private:
  int InputNamed(const std::string& name) const {
    return static_cast<int>(std::find(step_.inputs().begin(), step_.inputs().end(), name) -
                            step_.inputs().begin());
  }

  v1::Step& step_;
};

}  // namespace

const MapOpRow* ElementwiseNamed(std::string_view name) {
  for (const MapOpRow& row : kMapOps) {
    if (row.operands > 0 && row.result != MapResult::kGiven && row.name == name) return &row;
  }
  return nullptr;
}

const InfixOperator* InfixAt(std::string_view text) {
  const auto found = std::find_if(kInfix.begin(), kInfix.end(), [&](const InfixOperator& infix) {
    return text.substr(0, infix.text.size()) == infix.text;
  });
  // "**" is a power, not a product.
  if (found == kInfix.end() || text.substr(0, 2) == "**") return nullptr;
  return &*found;
}

std::optional<Tree> NumberOf(const MapOpRow& row, const std::vector<Tree>& operands) {
  if (operands.size() != 2) return std::nullopt;
  const Tree &x = operands[0], &y = operands[1];
  Tree number{.at = x.at};
  std::int64_t whole = 0;
  const bool both = x.integer.has_value() && y.integer.has_value();
  switch (static_cast<MapOp>(&row - kMapOps.data())) {
    case MapOp::kAdd:
      number.real = x.real + y.real;
      if (both && !__builtin_add_overflow(*x.integer, *y.integer, &whole)) number.integer = whole;
      return number;
    case MapOp::kSubtract:
      number.real = x.real - y.real;
      if (both && !__builtin_sub_overflow(*x.integer, *y.integer, &whole)) number.integer = whole;
      return number;
    case MapOp::kMultiply:
      number.real = x.real * y.real;
      if (both && !__builtin_mul_overflow(*x.integer, *y.integer, &whole)) number.integer = whole;
      return number;
    case MapOp::kDivide:
      number.real = x.real / y.real;
      return number;
    case MapOp::kPow:
      number.real = std::pow(x.real, y.real);
      // An f64 represents integers exactly up to 2^53.
      if (both && *y.integer >= 0 && std::fabs(number.real) <= 9007199254740992) {
        number.integer = static_cast<std::int64_t>(number.real);
      }
      return number;
    default:
      return std::nullopt;
  }
}

std::optional<v1::Step> MapStepOf(const Tree& tree) {
  v1::Step step;
  MapWriter writer(step);
  writer.CollectInputs(tree);
  writer.Write(tree);
  if (step.inputs_size() > kMaxMapInputs || step.map().nodes_size() > kMaxMapNodes) return std::nullopt;
  return step;
}

}  // namespace warpline::client
