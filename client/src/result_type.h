// What a result will be, as far as that can be told before it is asked for.
#ifndef WARPLINE_CLIENT_SRC_RESULT_TYPE_H_
#define WARPLINE_CLIENT_SRC_RESULT_TYPE_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "kernels/dtype.h"
#include "kernels/shape.h"
#include "warpline/requests.h"

namespace warpline::client {

// Of a dense array.
struct ArrayType {
  DType dtype = DType::kF32;
  Shape shape{};
  std::size_t bytes = 0;
};

// By the rules of the API. A result in shared memory is written without its length being sent along, so this
// must know it exactly: nothing where an operand is a resident tensor of unknown shape, or where the server
// will refuse the request. (It may refuse others, too.) The shape of a resident tensor counts as unknown if
// the operand has none, and else the request must tell it, so that the server checks it.
std::optional<ArrayType> ResultTypeOf(const TransposeArgs& args);
std::optional<ArrayType> ResultTypeOf(const GemmArgs& args);
std::optional<ArrayType> ResultTypeOf(const ReduceArgs& args);
// One entry for each output of the program.
std::vector<std::optional<ArrayType>> ResultTypesOf(const RunArgs& args);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_RESULT_TYPE_H_
