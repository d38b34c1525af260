// Programs as the `warpline` program gets them: from JSON.
#ifndef WARPLINE_CLIENT_CLI_PROGRAM_FILE_H_
#define WARPLINE_CLIENT_CLI_PROGRAM_FILE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline::client {

// From protobuf's JSON mapping of warpline.v1.Program. Values of enumerations may also be written by their
// short names: "sum" for "REDUCE_OP_SUM". InvalidArgument for anything else.
absl::StatusOr<v1::Program> ParseProgram(std::string_view json);

// The names that steps read and no step has, in the order of their first use: what a request must bring.
std::vector<std::string> InputsOf(const v1::Program& program);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_CLI_PROGRAM_FILE_H_
