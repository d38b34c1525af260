// The types and shapes of a call's results, by the rules of the API (proto/rules), before anything is sent.
#ifndef WARPLINE_CLIENT_SRC_RESULT_TYPE_H_
#define WARPLINE_CLIENT_SRC_RESULT_TYPE_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/program.h"
#include "warpline/requests.h"

namespace warpline::client {

// The type, shape and size of a dense array.
using ArrayType = TensorSpec;

// One entry for each result. Nothing for a result whose type is unknown: an operand is a resident tensor of
// which only the id is known, or the operation is one of a newer API.
using ResultTypes = std::vector<std::optional<ArrayType>>;

// Returns the types of the results, which are exact: a result in shared memory is written without its length
// being sent along. If the server would refuse the types, shapes or options, returns the error that it would
// give, with the field at fault (DetailsOf in error.h). The server may refuse other requests, too.
//
// If the operand of a resident tensor has no shape, its type counts as unknown. Otherwise the request must
// tell the shape, so that the server checks it.
absl::StatusOr<ResultTypes> ResultTypesOf(const RunArgs& args);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_RESULT_TYPE_H_
