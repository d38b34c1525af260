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
//   operand    = call | name | number | '(' expression ')'       a name is an earlier one, else an input
//   call       = operation '(' expression { ',' expression } { ',' argument } ')'
//   argument   = field '=' value                                 fields of the operation's message
//   value     = number | 'true' | 'false' | word | quoted word | '[' [ number { ',' number } ] ']'
//
// Operations are the fields of Step.operation in warpline.proto by their names, such as gemm or reshape, and
// the elementwise ones of MapOp: exp(x), where(c, x, y); and reductions by their names: mean(x, axis=0).
// Every operation takes variant=.
//
// Operators and their precedence are Python's: ** * / // % @ + - << >> & ^ | and comparisons, which do not
// chain; the signs are - + ~. Neighbouring elementwise operations become one map. The server converts
// nothing: all arrays of an elementwise operation have one data type, which a number takes on.
//
// Values of enumerations are written as sum, f32 or relu, or in full as REDUCE_OP_SUM. The words true and
// false may start with a capital letter. A list of one number may omit the brackets. The names dtype and
// out_dtype stand for data_type and out_data_type.
//
// Arguments without a default are required: op of reduce and scan, dtype of cast, factor of scale, shape of
// reshape and broadcast_to, k of topk. gemm also takes operands as c= and bias=, and searchsorted as sorter=.
// If there is a c but no beta, beta is 1. The name that sort and topk take as indices= is that of a further
// result: v = topk(x, k=10, indices=i); take(w, i).
//
// A name has letters, digits, '_' and '.', starts with a letter or '_', and must not have been read as an
// input before. Steps without a name are called "1.gemm".
//
// InvalidArgument for a syntax error, such as "column 9: expected ',' or ')', found 'x'". The server checks
// whether the program makes sense.
absl::StatusOr<v1::Program> ParseExpression(std::string_view text);

}  // namespace warpline::client

#endif  // WARPLINE_PROGRAM_H_
