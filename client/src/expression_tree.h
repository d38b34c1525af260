// The parsed operands of expressions: names, numbers, and elementwise operations on them, which become one
// map.
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
  std::size_t at = 0;                     // its position in the text
  std::string name;                       // the name of an array; empty for other nodes
  double real = 0;                        // a number
  std::optional<std::int64_t> integer{};  // set if the number is an integer
  const MapOpRow* row = nullptr;          // an operation; null for other nodes
  std::vector<Tree> operands{};
  int nodes = 1;  // upper bound of the nodes in a map of this tree

  bool is_number() const { return row == nullptr && name.empty(); }
};

// Returns the operation called `name`; null if there is none. Constants and indices have no operands to
// write, and casts are separate steps, so this does not find them.
const MapOpRow* ElementwiseNamed(std::string_view name);

// An infix operator with two operands. Operators of a higher level bind more tightly.
struct InfixOperator {
  std::string_view text;
  MapOp op;
  int level;
};
// Returns the operator at the start of the text; null if there is none. `text` must not start with a space.
const InfixOperator* InfixAt(std::string_view text);
// The levels of InfixOperator are 0 to this one. Signs bind more tightly than all of them, and ** more than
// signs.
inline constexpr int kTightestLevel = 6;

// Evaluates +, -, *, / or ** of two numbers; nothing for any other operation. The result is an integer if
// both operands are and it does not overflow, except for / and negative exponents.
std::optional<Tree> NumberOf(const MapOpRow& row, const std::vector<Tree>& operands);

// Returns a map of the tree: a step with inputs and nodes. Numbers have no data type of their own: they get
// the type of the other operand. Returns nothing if the tree has more inputs or nodes than a map may have.
std::optional<v1::Step> MapStepOf(const Tree& tree);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_EXPRESSION_TREE_H_
