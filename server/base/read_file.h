// A file as a whole.
#ifndef WARPLINE_SERVER_BASE_READ_FILE_H_
#define WARPLINE_SERVER_BASE_READ_FILE_H_

#include <string>

#include "absl/status/statusor.h"

namespace warpline {

// INVALID_ARGUMENT for what is no regular file, whose end may never come; else the error of opening or
// reading it. Names the path.
absl::StatusOr<std::string> ReadFile(const std::string& path);

}  // namespace warpline

#endif  // WARPLINE_SERVER_BASE_READ_FILE_H_
