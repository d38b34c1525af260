// The type and shape of a result, as far as they can be told before it is asked for.
#ifndef WARPLINE_CLIENT_SRC_RESULT_TYPE_H_
#define WARPLINE_CLIENT_SRC_RESULT_TYPE_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "kernels/dtype.h"
#include "kernels/shape.h"
#include "warpline/requests.h"

namespace warpline::client {

// The type, shape and size of a dense array.
struct ArrayType {
  DType dtype = DType::kF32;
  Shape shape{};
  std::size_t bytes = 0;
};

// Returns the type of the result by the rules of the API. A result in shared memory is written without its
// length being sent along, so this type must be exact. Returns nothing if an operand is a resident tensor of
// unknown shape, or if the server will refuse the request. (The server may refuse other requests, too.) If
// the operand of a resident tensor has no shape, the shape counts as unknown. Otherwise the request must tell
// the shape, so that the server checks it.
std::optional<ArrayType> ResultTypeOf(const TransposeArgs& args);
std::optional<ArrayType> ResultTypeOf(const GemmArgs& args);
std::optional<ArrayType> ResultTypeOf(const ReduceArgs& args);
// One entry for each output of the program.
std::vector<std::optional<ArrayType>> ResultTypesOf(const RunArgs& args);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_RESULT_TYPE_H_
