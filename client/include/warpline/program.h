// Programs in one line.
//
//   auto program = ParseExpression("reduce(transpose(gemm(a, b)), op=sum, axes=[1])");
//   auto program = ParseExpression("p = gemm(a, b, bias=v, activation=relu); add(p, transpose(p))");
#ifndef WARPLINE_PROGRAM_H_
#define WARPLINE_PROGRAM_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline::client {

// Of a program. So calls cannot lie deeper in one another either.
inline constexpr int kMaxSteps = 64;

// The grammar, with spaces anywhere between the words:
//
//   program   = { name '=' call separator } call     the last call is the program's only output
//   separator = ';' | end of line
//   call      = operation '(' operand { ',' operand } { ',' argument } ')'
//   operand   = call | name                           a name is an earlier one, else an input
//   argument  = field '=' value                       fields of the operation's message in warpline.proto
//   value     = number | 'true' | 'false' | word | quoted word | '[' [ number { ',' number } ] ']'
//
// Operations are transpose, gemm, reduce, cast, scale and add. Values of enumerations are written as sum, f32
// or relu, or in full as REDUCE_OP_SUM; true and false may start with a capital letter; a list of one number
// may do without brackets; dtype and out_dtype stand for data_type and out_data_type; every operation takes
// variant=. What has no default has to be given: op of reduce, dtype of cast, factor of scale. gemm takes
// operands as c= and bias= too (and beta is 1 if there is a c but no beta). A name starts with a letter or
// '_', and is not one that was read as an input before; steps without one are called "1.gemm".
//
// InvalidArgument, as "column 9: expected ',' or ')', found 'x'". Whether the program makes sense is the
// server's to say.
absl::StatusOr<v1::Program> ParseExpression(std::string_view text);

}  // namespace warpline::client

#endif  // WARPLINE_PROGRAM_H_
