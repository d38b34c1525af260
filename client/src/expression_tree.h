// Operands of expressions as they are read: names, numbers, and elementwise operations of these, which become
// one map.
#ifndef WARPLINE_CLIENT_SRC_EXPRESSION_TREE_H_
#define WARPLINE_CLIENT_SRC_EXPRESSION_TREE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/map/operations.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline::client {

struct Tree {
  std::size_t at = 0;                     // its place in the text
  std::string name;                       // of an array; empty for the others
  double real = 0;                        // a number
  std::optional<std::int64_t> integer{};  // a number that is whole
  const MapOpRow* row = nullptr;          // an operation; null for the others
  std::vector<Tree> operands{};
  int nodes = 1;  // that a map of it has, at most

  bool is_number() const { return row == nullptr && name.empty(); }
};

// The operation that a call of `name` means; null for another name. Constants and indices have no operand to
// be written, and casts are steps of their own.
const MapOpRow* ElementwiseNamed(std::string_view name);

// An infix operator with two operands. Those of a higher level bind more tightly.
struct InfixOperator {
  std::string_view text;
  MapOp op;
  int level;
};
// The one that the text begins with; null if there is none. `text` has no spaces in front.
const InfixOperator* InfixAt(std::string_view text);
// The levels of InfixOperator are from 0 to this one. Signs bind more tightly, and ** more than these.
inline constexpr int kTightestLevel = 6;

// Evaluates +, -, *, / or ** of two numbers; nothing for any other operation. The result is an integer if
// both operands are and it does not overflow, except for / and negative exponents.
std::optional<Tree> NumberOf(const MapOpRow& row, const std::vector<Tree>& operands);

// A map of the tree: the step has its inputs and nodes. Numbers have no data type: they take that of what is
// beside them. Nothing if the tree has more inputs or nodes than a map may have.
std::optional<v1::Step> MapStepOf(const Tree& tree);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_EXPRESSION_TREE_H_
