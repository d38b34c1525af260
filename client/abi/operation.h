// Programs of one step, as the requests of their own.
#ifndef WARPLINE_CLIENT_ABI_OPERATION_H_
#define WARPLINE_CLIENT_ABI_OPERATION_H_

#include <optional>

#include "warpline/requests.h"

namespace warpline::abi {

// A program with these inputs as a single operation; nothing if it is not one transpose, gemm or reduce of
// its inputs. The program of `run` is not read.
std::optional<client::OperationArgs> ToOperation(const v1::Program& program, const client::RunArgs& run);

}  // namespace warpline::abi

#endif  // WARPLINE_CLIENT_ABI_OPERATION_H_
