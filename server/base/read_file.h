// A file as a whole.
#ifndef WARPLINE_SERVER_BASE_READ_FILE_H_
#define WARPLINE_SERVER_BASE_READ_FILE_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace warpline {

// Files that people write.
inline constexpr std::size_t kMaxFileBytes = std::size_t{1} << 20;

// INVALID_ARGUMENT for what is no regular file, whose end may never come, or is larger than `max_bytes`; else
// the error of opening or reading it. Names the path.
absl::StatusOr<std::string> ReadFile(const std::string& path, std::size_t max_bytes = kMaxFileBytes);

}  // namespace warpline

#endif  // WARPLINE_SERVER_BASE_READ_FILE_H_
