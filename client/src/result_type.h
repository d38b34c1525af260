// Determines types and shapes of a call's results by the API's rules (proto/rules), before anything is sent.
#ifndef WARPLINE_CLIENT_SRC_RESULT_TYPE_H_
#define WARPLINE_CLIENT_SRC_RESULT_TYPE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/program.h"
#include "warpline/program.h"
#include "warpline/requests.h"

namespace warpline::client {

// The type, shape and size of a dense array.
using ArrayType = TensorSpec;

// One entry for each result. The entry is empty if the type is unknown: either only the id of an operand's
// resident tensor is known, or the operation is from a newer API.
using ResultTypes = std::vector<std::optional<ArrayType>>;

// Returns the types of the results. They are exact, because a result in shared memory is written without its
// length being sent. If the server would refuse the types, shapes or options, returns the server's error,
// with the invalid field (DetailsOf in error.h). The server may also refuse requests that pass this check.
//
// If the operand for a resident tensor has no shape, its type counts as unknown. Otherwise the request must
// contain the shape, so that the server checks it.
absl::StatusOr<ResultTypes> ResultTypesOf(const RunArgs& args);

// Returns the type of an input or of a result in a program that need not be complete: its outputs do not
// matter. It is empty if it is unknown, as are the types of inputs that are not in the list.
absl::StatusOr<std::optional<ArrayType>> TypeInProgram(const v1::Program& program,
                                                       const ProgramInputs& inputs, const std::string& name);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_RESULT_TYPE_H_
