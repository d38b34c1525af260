// Reads a whole file.
#ifndef WARPLINE_SERVER_BASE_READ_FILE_H_
#define WARPLINE_SERVER_BASE_READ_FILE_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace warpline {

// The limit for files that people write.
inline constexpr std::size_t kMaxFileBytes = std::size_t{1} << 20;

// INVALID_ARGUMENT if the file is larger than `max_bytes`, or not a regular file, which might never end.
// Otherwise the error of opening or reading it. Errors name the path.
absl::StatusOr<std::string> ReadFile(const std::string& path, std::size_t max_bytes = kMaxFileBytes);

}  // namespace warpline

#endif  // WARPLINE_SERVER_BASE_READ_FILE_H_
