// The file of --tokens: who may use the server, and how much of it each may use.
#ifndef WARPLINE_SERVER_IDENTITY_OWNER_FILE_H_
#define WARPLINE_SERVER_IDENTITY_OWNER_FILE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/base/owner_limits.h"

namespace warpline {

// One table of the file, which is TOML:
//
//   [owner."token:alice"]
//   sha256 = "..."             # of the token, in 64 hexadecimal digits; only of token:NAME
//   weight = 2                 # of device time, from 0.01 to 100; default 1
//   jobs = 100                 # requests admitted and unanswered
//   bytes = "1G"               # of these and their results, 8M or more; as a number too, or with K, M or G
//   resident-bytes = "8G"      # of resident tensors, on each device
//   region-bytes = "4G"        # of shared regions
//
//   [owner."cert:CN=bob,O=example"]    # the subject of a client's certificate (RFC 2253)
//   [owner.anonymous]                  # clients without an identity, where those are let in
//   [owner.default]                    # of owners that have no table: those with certificates
struct OwnerEntry {
  std::string name;          // "token:alice", "cert:CN=bob", "anonymous" or "default"
  std::string token_digest;  // the 32 bytes of SHA-256; empty: there is no token
  OwnerLimits limits;
};

// INVALID_ARGUMENT, with the owner, the key and its allowed values, or with the line that is not valid TOML.
// `path` is for messages.
absl::StatusOr<std::vector<OwnerEntry>> ParseOwners(const std::string& text, const std::string& path);

}  // namespace warpline

#endif  // WARPLINE_SERVER_IDENTITY_OWNER_FILE_H_
