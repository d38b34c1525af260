// What is asked of a server, and what comes back: the arguments and results of a client's calls.
#ifndef WARPLINE_REQUESTS_H_
#define WARPLINE_REQUESTS_H_

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "kernels/dtype.h"
#include "warpline/array.h"
#include "warpline/tensor.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline::client {

// The requests, field by field as in warpline.proto, which says what is valid. An operand that is a resident
// tensor must have its handle until the call is over, or another lease that lasts for so long. `reproducible`
// is that of RequestOptions.
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

// A program is written as a message, or parsed from an expression (program.h).
struct RunArgs {
  v1::Program program{};
  std::vector<std::pair<std::string, Operand>> inputs{};
  // Where the outputs go, in their order. Those without one here go into new memory.
  std::vector<Destination> destinations{};
  bool reproducible = false;
};

// Any of the operations.
using OperationArgs = std::variant<TransposeArgs, GemmArgs, ReduceArgs>;

// What came of an operation, and how it was computed.
struct Result {
  // The default one, which has no memory, if the result was to stay on the server.
  Array array;
  // Set if the result was to stay on the server (Destination::keep).
  std::optional<Tensor> tensor{};
  v1::Execution execution{};
};

struct RunResult {
  // In the order of Program.outputs. Of an output that stays on the server the array is the default one.
  std::vector<std::pair<std::string, Array>> outputs;
  // One entry for each output, set for those that stay on the server.
  std::vector<std::optional<Tensor>> tensors{};
  v1::Execution execution{};
};

}  // namespace warpline::client

#endif  // WARPLINE_REQUESTS_H_
