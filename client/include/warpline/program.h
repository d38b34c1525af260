// Programs in one line.
//
//   auto program = ParseExpression("reduce(transpose(gemm(a, b)), op=sum, axes=[1])");
//   auto program = ParseExpression("(x - mean(x, axis=0)) / std(x, axis=0)");
//   auto program = ParseExpression("p = gemm(a, b, bias=v, activation=relu); add(p, transpose(p))");
#ifndef WARPLINE_PROGRAM_H_
#define WARPLINE_PROGRAM_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "warpline/requests.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline::client {

// The maximum number of steps of a program, and so also the maximum depth of nested calls.
inline constexpr int kMaxSteps = 256;

// The grammar, with spaces anywhere between the words:
//
//   program    = { name '=' expression separator } expression    the last one is the program's only output
//   separator  = ';' | end of line
//   expression = operand | sign expression | expression operator expression
//   operand    = atom { '[' index ']' }
//   atom       = call | name | number | '(' expression ')'       an earlier name, or else an input
//   index      = expression | part { ',' part }                  an array of bool or of places, or parts:
//   part       = number | [ number ] ':' [ number ] [ ':' [ number ] ] | '...'
//   call       = operation '(' expression { ',' expression } { ',' argument } ')'
//   argument   = field '=' value                                 fields of the operation's message
//   value      = number | 'true' | 'false' | word | quoted word | '[' [ number { ',' number } ] ']'
//
// Operations are the fields of Step.operation in warpline.proto, such as gemm or reshape; elementwise
// operations of MapOp, such as exp(x) or where(c, x, y); and reductions, such as mean(x, axis=0). Each of
// these takes variant=. The functions median, quantile, cumsum, cumprod, nonzero and unique are made of
// several steps. Indices and functions are NumPy's, except that nonzero returns the places along one axis.
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
//
// Some forms depend on types and shapes: the functions median, quantile, nonzero and unique, indices that are
// numbers or arrays, and numbers where an operation other than an elementwise one reads an array. They need
// `inputs`: FAILED_PRECONDITION, with the column, if an input that matters is not in the list, or if it is a
// resident tensor without its shape.
absl::StatusOr<v1::Program> ParseExpression(std::string_view text, const ProgramInputs& inputs = {});

}  // namespace warpline::client

#endif  // WARPLINE_PROGRAM_H_
