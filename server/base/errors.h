// Facts that travel with an absl::Status as payloads, so that the transport can put them into typed error
// details (server/rpc/rpc_status.h) without anything below it knowing of gRPC or protobuf.
#ifndef WARPLINE_SERVER_BASE_ERRORS_H_
#define WARPLINE_SERVER_BASE_ERRORS_H_

#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "kernels/field_error.h"

namespace warpline {

// The URL of the payload that has the delay, in decimal milliseconds. Fields are those of field_error.h.
inline constexpr std::string_view kRetryPayloadUrl = "warpline/retry-ms";

// Says when it is worth trying again; rounded up to a millisecond, never negative. An OK status, which has
// no payloads, stays as it is.
absl::Status WithRetryAfter(absl::Status status, absl::Duration delay);

// The delay as a client should hear it: by up to as much again longer, at random. Clients that are refused at
// one time would otherwise all come back at one time.
absl::Duration Spread(absl::Duration delay);
absl::Status WithSpreadRetryAfter(const absl::Status& status);

// Returns the delay that the functions above attached, or nothing.
std::optional<absl::Duration> RetryAfterOf(const absl::Status& status);

}  // namespace warpline

#endif  // WARPLINE_SERVER_BASE_ERRORS_H_
