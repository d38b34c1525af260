// Reads programs of the `warpline` command from JSON.
#ifndef WARPLINE_CLIENT_CLI_PROGRAM_FILE_H_
#define WARPLINE_CLIENT_CLI_PROGRAM_FILE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline::client {

// Parses protobuf's JSON mapping of warpline.v1.Program. Enumeration values may also have short names: "sum"
// for "REDUCE_OP_SUM". InvalidArgument for anything else.
absl::StatusOr<v1::Program> ParseProgram(std::string_view json);

// Returns the names that steps read and that are no steps, in the order of first use. A request must supply
// these inputs.
std::vector<std::string> InputsOf(const v1::Program& program);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_CLI_PROGRAM_FILE_H_
