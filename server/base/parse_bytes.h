// Parses numbers of bytes as people write them.
#ifndef WARPLINE_SERVER_BASE_PARSE_BYTES_H_
#define WARPLINE_SERVER_BASE_PARSE_BYTES_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace warpline {

// Parses "4096", "64K", "256MiB" or "1G", where K, M and G are powers of 1024, with or without "iB". Returns
// INVALID_ARGUMENT, without the text, for anything else and for a number that is too large.
absl::StatusOr<std::int64_t> ParseBytes(const std::string& text);

}  // namespace warpline

#endif  // WARPLINE_SERVER_BASE_PARSE_BYTES_H_
