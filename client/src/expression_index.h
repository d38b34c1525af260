// Indices in brackets behind an array of an expression.
#ifndef WARPLINE_CLIENT_SRC_EXPRESSION_INDEX_H_
#define WARPLINE_CLIENT_SRC_EXPRESSION_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/src/expression_program.h"
#include "client/src/expression_tree.h"

namespace warpline::client {

// One part of an index: a range of an axis, one place of it, or "...".
struct IndexPart {
  std::size_t at = 0;
  bool is_ellipsis = false;
  std::optional<std::int64_t> place;
  std::optional<std::int64_t> start, end;
  std::int64_t step = 1;
};

// Makes x[parts], with NumPy's rules.
absl::StatusOr<Tree> Indexed(ExpressionProgram& program, std::size_t at, const std::string& x,
                             const std::vector<IndexPart>& parts);
// Makes x[index], where the index is an array: a mask of bool, or places along the first axis.
absl::StatusOr<Tree> Indexed(ExpressionProgram& program, std::size_t at, const std::string& x,
                             const std::string& index);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_EXPRESSION_INDEX_H_
