// Programs as the `warpline` program gets them: from JSON, and for arrays in Fortran order.
#ifndef WARPLINE_CLIENT_PROGRAM_H_
#define WARPLINE_CLIENT_PROGRAM_H_

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

// Has a new first step transpose (all axes reversed) what the program reads as `input`, of this rank. Returns
// the name under which the array is to be sent instead; the step has taken the old one.
std::string ReadTransposed(v1::Program& program, const std::string& input, int rank);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_PROGRAM_H_
