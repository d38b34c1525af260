// Programs in one line.
//
//   auto program = ParseExpression("reduce(transpose(gemm(a, b)), op=sum, axes=[1])");
//   auto program = ParseExpression("p = gemm(a, b, bias=v, activation=relu); add(p, transpose(p))");
#ifndef WARPLINE_CLIENT_EXPRESSION_H_
#define WARPLINE_CLIENT_EXPRESSION_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline::client {

// How deep calls may lie in one another. A program has at most as many steps.
inline constexpr int kMaxExpressionDepth = 64;

// The grammar, with spaces anywhere between the words:
//
//   program  = { name '=' call ';' } call            the last call is the program's only output
//   call     = operation '(' operand { ',' operand } { ',' argument } ')'
//   operand  = call | name                           a name is an earlier one, else an input
//   argument = field '=' value                       fields of the operation's message in warpline.proto
//   value    = number | 'true' | 'false' | word | '[' [ number { ',' number } ] ']'
//
// Operations are transpose, gemm, reduce, cast, scale and add. Values of enumerations are written as sum, f32
// or relu; a list of one number may do without brackets; dtype and out_dtype stand for data_type and
// out_data_type; every operation takes variant=. gemm takes operands as c= and bias= too (and beta is 1 if
// there is a c but no beta). A name starts with a letter or '_'; steps without one are called "1.gemm".
//
// InvalidArgument, as "column 9: expected ',' or ')', found 'x'". Whether the program makes sense is the
// server's to say.
absl::StatusOr<v1::Program> ParseExpression(std::string_view text);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_EXPRESSION_H_
