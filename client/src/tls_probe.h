// The reason why a client and a server do not agree on TLS. gRPC itself tells only that it could not connect.
#ifndef WARPLINE_CLIENT_SRC_TLS_PROBE_H_
#define WARPLINE_CLIENT_SRC_TLS_PROBE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "warpline/options.h"

namespace warpline::client {

// Connects to the server once more, without gRPC, and tells in a sentence what is wrong with TLS: it is
// missing on one of the two sides; the server's certificate is not trusted, expired, or another host's; the
// client's certificate is missing or not accepted. Empty if there is nothing wrong, or nobody to ask. Takes
// two seconds at most, and ends by the deadline. `target` as gRPC has it; for unix sockets, and what only
// gRPC can resolve, there is no answer.
std::string ExplainTls(const std::string& target, const TlsOptions& tls, absl::Time deadline);

// Returns the same error, with that sentence in front, if it is gRPC's error of a failed connection.
absl::Status WithTlsProblem(const absl::Status& status, const std::string& target, const TlsOptions& tls,
                            absl::Time deadline);
// True if the error has that sentence.
bool HasTlsProblem(const absl::Status& status);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_TLS_PROBE_H_
