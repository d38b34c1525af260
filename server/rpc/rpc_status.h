// Converts an absl::Status to a grpc::Status. All errors leave the server through this function.
#ifndef WARPLINE_SERVER_RPC_RPC_STATUS_H_
#define WARPLINE_SERVER_RPC_RPC_STATUS_H_

#include <grpcpp/support/status.h>

#include <cstddef>
#include <string_view>

#include "absl/status/status.h"

namespace warpline {

// Longer messages are cut. gRPC refuses trailers above 8 KiB, and they contain the message three times.
// Percent-encoding makes up to three bytes of each byte of the status message; base64 makes 4/3 bytes of each
// byte in the details and in their BadRequest. Together that is 5.7 times this limit. Some 600 bytes are
// needed for the request id and the rest. Unit: bytes.
inline constexpr std::size_t kStatusMessageMax = 1024;

// Returns a status with the same code, and the message of `status` with the request id. The details are a
// google.rpc.Status with RequestInfo and, if server/base/errors.h has attached the facts, BadRequest and
// RetryInfo. OK stays plain OK. `request_id` must be printable ASCII.
grpc::Status ToGrpcStatus(const absl::Status& status, std::string_view request_id);

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_RPC_STATUS_H_
