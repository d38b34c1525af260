// Finds why a client and a server do not agree on TLS. gRPC itself says only that it could not connect.
#ifndef WARPLINE_CLIENT_SRC_TLS_PROBE_H_
#define WARPLINE_CLIENT_SRC_TLS_PROBE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "warpline/options.h"

namespace warpline::client {

// Connects to the server again, without gRPC, and returns one sentence about the TLS problem: TLS is missing
// on one side; the server's certificate is not trusted, expired, or for another host; the client's
// certificate is missing or not accepted. Empty if there is no problem, or no server to ask. Takes at most
// two seconds, and ends by the deadline. `target` is in gRPC's form. The result is empty for unix sockets,
// and for targets that only gRPC can resolve.
std::string ExplainTls(const std::string& target, const TlsOptions& tls, absl::Time deadline);

// If the status is gRPC's error of a failed connection, returns it with that sentence in front.
absl::Status WithTlsProblem(const absl::Status& status, const std::string& target, const TlsOptions& tls,
                            absl::Time deadline);
// True if the error contains that sentence.
bool HasTlsProblem(const absl::Status& status);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_TLS_PROBE_H_
