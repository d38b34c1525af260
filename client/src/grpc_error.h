// Converts gRPC errors to errors of this library.
#ifndef WARPLINE_CLIENT_SRC_GRPC_ERROR_H_
#define WARPLINE_CLIENT_SRC_GRPC_ERROR_H_

#include <grpcpp/client_context.h>
#include <grpcpp/support/status.h>

#include <functional>
#include <string>

#include "absl/status/status.h"

namespace warpline::client {

// Returns a status with the same code, and with the details that DetailsOf (error.h) reads. `request_id` may
// be empty.
absl::Status ToAbslStatus(const grpc::Status& status, const std::string& request_id);
// Returns the status of a finished call, with the request id that the server gave.
absl::Status ToAbslStatus(const grpc::Status& status, const grpc::ClientContext& context);
// Changes the fields and descriptions of the violations that a server sent.
absl::Status WithViolations(absl::Status status,
                            const std::function<std::string(const std::string&)>& change);
// Adds to an error how often the call was made.
absl::Status WithAttempts(absl::Status status, int attempts);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_GRPC_ERROR_H_
