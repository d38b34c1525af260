// What keeps a client and a server from agreeing on TLS. gRPC tells no more of it than that it could not
// connect.
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

// The same error, with that sentence in front, if it is gRPC's of a connection that did not come about.
absl::Status WithTlsProblem(const absl::Status& status, const std::string& target, const TlsOptions& tls,
                            absl::Time deadline);
// Whether the sentence is there.
bool HasTlsProblem(const absl::Status& status);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_TLS_PROBE_H_
