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
#include "warpline/v1/warpline.pb.h"

namespace warpline::client {

// The requests, field by field as in warpline.proto, which says what is valid.
struct TransposeArgs {
  ConstArray x{};
  std::vector<int> perm{};
  std::string variant{};
};

struct GemmArgs {
  ConstArray a{}, b{};
  std::optional<ConstArray> c{};
  bool trans_a = false, trans_b = false;
  std::optional<double> alpha{}, beta{};
  v1::Precision precision = v1::PRECISION_UNSPECIFIED;
  std::string variant{};
  std::optional<ConstArray> bias{};
  v1::Activation activation = v1::ACTIVATION_UNSPECIFIED;
  std::optional<DType> out_data_type{};
};

struct ReduceArgs {
  ConstArray x{};
  v1::ReduceOp op = v1::REDUCE_OP_SUM;
  std::vector<int> axes{};
  bool keepdims = false;
  std::string variant{};
  std::optional<DType> out_data_type{};
  int ddof = 0;
};

// A program is written as a message, or parsed from an expression (program.h).
struct RunArgs {
  v1::Program program{};
  std::vector<std::pair<std::string, ConstArray>> inputs{};
  // Where the outputs go, in their order. Those without one here go into new memory.
  std::vector<Destination> destinations{};
};

// Any of the operations.
using OperationArgs = std::variant<TransposeArgs, GemmArgs, ReduceArgs>;

// What came of an operation: the array, and how it was computed.
struct Result {
  Array array;
  v1::Execution execution;
};

struct RunResult {
  // In the order of Program.outputs.
  std::vector<std::pair<std::string, Array>> outputs;
  v1::Execution execution;
};

}  // namespace warpline::client

#endif  // WARPLINE_REQUESTS_H_
