// The arguments and results of a client's calls.
#ifndef WARPLINE_REQUESTS_H_
#define WARPLINE_REQUESTS_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/dtype.h"
#include "warpline/array.h"
#include "warpline/tensor.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline::client {

// The arguments of each operation. Their fields are those in warpline.proto, which says what is valid. If an
// operand is a resident tensor, its handle must live until the call is over, or another lease must last that
// long. `reproducible` is the field of RequestOptions with that name.
struct TransposeArgs {
  Operand x{};
  std::vector<int> perm{};
  std::string variant{};
  bool reproducible = false;
};

struct GemmArgs {
  Operand a{}, b{};
  std::optional<Operand> c{};
  bool trans_a = false, trans_b = false;
  std::optional<double> alpha{}, beta{};
  v1::Precision precision = v1::PRECISION_UNSPECIFIED;
  std::string variant{};
  std::optional<Operand> bias{};
  v1::Activation activation = v1::ACTIVATION_UNSPECIFIED;
  std::optional<DType> out_data_type{};
  bool reproducible = false;
};

struct ReduceArgs {
  Operand x{};
  v1::ReduceOp op = v1::REDUCE_OP_SUM;
  std::vector<int> axes{};
  bool keepdims = false;
  std::string variant{};
  std::optional<DType> out_data_type{};
  int ddof = 0;
  bool reproducible = false;
};

// The inputs of a program, with their names.
using ProgramInputs = std::vector<std::pair<std::string, Operand>>;

// A program is written as a message, or parsed from an expression (program.h).
struct RunArgs {
  v1::Program program{};
  ProgramInputs inputs{};
  // The destinations of the outputs, in the same order. Outputs without an entry go into new memory.
  std::vector<Destination> destinations{};
  bool reproducible = false;
  // If true, and the program is one step that reads the inputs in their order, errors name the inputs and the
  // options of the step ("a.shape", "perm") instead of fields of the program.
  bool one_step = false;
};

// Returns the equivalent program with only one step, with inputs "x", or "a", "b", "c" and "bias".
RunArgs OneStep(const TransposeArgs& args);
RunArgs OneStep(const GemmArgs& args);
RunArgs OneStep(const ReduceArgs& args);

// The indices of the operands and results of a call that travelled in ranges
// (ClientOptions::stream_from_bytes). Operands are in the order of their fields or of RunArgs::inputs.
struct Streamed {
  std::vector<std::size_t> operands{}, results{};
};

// The result of an operation, and how it was computed.
struct Result {
  // The result. It is a default Array, without memory, if the result was to stay on the server.
  Array array;
  // The tensor, if the result was to stay on the server (Destination::keep).
  std::optional<Tensor> tensor{};
  v1::Execution execution{};
  Streamed streamed{};
};

struct RunResult {
  // The outputs with their names, in the order of Program.outputs. The array is a default Array for an output
  // that stays on the server.
  std::vector<std::pair<std::string, Array>> outputs;
  // The tensors, one entry for each output. An entry is set if that output stays on the server.
  std::vector<std::optional<Tensor>> tensors{};
  v1::Execution execution{};
  Streamed streamed{};
};

}  // namespace warpline::client

#endif  // WARPLINE_REQUESTS_H_
