// Facts that an absl::Status carries as payloads, so that the transport can put them into typed error details
// (server/rpc/rpc_status.h). The code below the transport need not know about gRPC or protobuf.
#ifndef WARPLINE_SERVER_BASE_ERRORS_H_
#define WARPLINE_SERVER_BASE_ERRORS_H_

#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "kernels/field_error.h"

namespace warpline {

// The URL of the payload with the delay, in decimal milliseconds. For payloads with fields see field_error.h.
inline constexpr std::string_view kRetryPayloadUrl = "warpline/retry-ms";

// Adds the delay after which the client should try again, rounded up to a millisecond, never negative. An OK
// status, which has no payloads, is unchanged.
absl::Status WithRetryAfter(absl::Status status, absl::Duration delay);

// Returns the delay for a client: a random time between once and twice `delay`. Otherwise clients that are
// refused at the same time would all return at the same time.
absl::Duration Spread(absl::Duration delay);
absl::Status WithSpreadRetryAfter(const absl::Status& status);

// Returns the delay that the functions above attached, or nothing.
std::optional<absl::Duration> RetryAfterOf(const absl::Status& status);

}  // namespace warpline

#endif  // WARPLINE_SERVER_BASE_ERRORS_H_
