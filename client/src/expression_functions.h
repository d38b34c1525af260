// Functions of expressions that are made of several steps, such as median.
#ifndef WARPLINE_CLIENT_SRC_EXPRESSION_FUNCTIONS_H_
#define WARPLINE_CLIENT_SRC_EXPRESSION_FUNCTIONS_H_

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "client/src/expression_program.h"
#include "client/src/expression_tree.h"

namespace warpline::client {

struct FunctionCall {
  std::size_t at = 0;
  std::string x;  // the name of the operand
  std::optional<int> axis;
  bool keepdims = false;
  std::optional<double> q;
};

struct FunctionRow {
  std::string_view name, call, help;
  std::string_view arguments;  // those that it takes, as in "axis, keepdims"
  bool Takes(std::string_view argument) const;
  absl::StatusOr<Tree> (*make)(ExpressionProgram& program, const FunctionCall& call);
};

std::span<const FunctionRow> FunctionTable();
const FunctionRow* FunctionNamed(std::string_view name);  // null if there is none

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_EXPRESSION_FUNCTIONS_H_
