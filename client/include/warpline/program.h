// Programs in one line.
//
//   auto program = ParseExpression("reduce(transpose(gemm(a, b)), op=sum, axes=[1])");
//   auto program = ParseExpression("(x - mean(x, axis=0)) / std(x, axis=0)");
//   auto program = ParseExpression("p = gemm(a, b, bias=v, activation=relu); add(p, transpose(p))");
#ifndef WARPLINE_PROGRAM_H_
#define WARPLINE_PROGRAM_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline::client {

// The maximum number of steps of a program, and so also the maximum depth of nested calls.
inline constexpr int kMaxSteps = 256;

// The grammar, with spaces anywhere between the words:
//
//   program    = { name '=' expression separator } expression    the last one is the program's only output
//   separator  = ';' | end of line
//   expression = operand | sign expression | expression operator expression
//   operand    = call | name | number | '(' expression ')'       an earlier name, or else an input
//   call       = operation '(' expression { ',' expression } { ',' argument } ')'
//   argument   = field '=' value                                 fields of the operation's message
//   value      = number | 'true' | 'false' | word | quoted word | '[' [ number { ',' number } ] ']'
//
// Operations are the fields of Step.operation in warpline.proto, such as gemm or reshape; elementwise
// operations of MapOp, such as exp(x) or where(c, x, y); and reductions, such as mean(x, axis=0). Every
// operation takes variant=.
//
// Operators and their precedence are Python's: ** * / // % @ + - << >> & ^ | and comparisons, which cannot be
// chained; the signs are - + ~. Neighbouring elementwise operations become one map. The server does not
// convert types: all arrays of an elementwise operation must have the same type; numbers take that type.
//
// Values of enumerations are written as sum, f32 or relu, or in full as REDUCE_OP_SUM. True and False are
// also accepted. A list of one number may omit the brackets. dtype is short for data_type, out_dtype for
// out_data_type.
//
// Arguments without a default are required: op of reduce and scan, dtype of cast, factor of scale, shape of
// reshape and broadcast_to, k of topk. gemm also takes operands as c= and bias=, and searchsorted as sorter=.
// If c is given without beta, beta is 1. sort and topk take indices=NAME, which names a second result:
// v = topk(x, k=10, indices=i); take(w, i).
//
// A name has letters, digits, '_' and '.', and starts with a letter or '_'. A name that was already read as
// an input cannot be assigned. An unnamed step is called by its position and operation, such as "1.gemm".
//
// Returns InvalidArgument for a syntax error, such as "column 9: expected ',' or ')', found 'x'". The server
// checks whether the program makes sense.
absl::StatusOr<v1::Program> ParseExpression(std::string_view text);

}  // namespace warpline::client

#endif  // WARPLINE_PROGRAM_H_
