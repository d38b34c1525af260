// Programs of one step, as the requests of their own.
#ifndef WARPLINE_CLIENT_ABI_OPERATION_H_
#define WARPLINE_CLIENT_ABI_OPERATION_H_

#include <optional>

#include "warpline/requests.h"

namespace warpline::abi {

// The same as a single operation; nothing if the program is not one transpose, gemm or reduce of its inputs.
std::optional<client::OperationArgs> ToOperation(const client::RunArgs& run);

}  // namespace warpline::abi

#endif  // WARPLINE_CLIENT_ABI_OPERATION_H_
