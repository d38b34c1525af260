// A file that appears whole or not at all.
#ifndef WARPLINE_CLIENT_CLI_OUTPUT_FILE_H_
#define WARPLINE_CLIENT_CLI_OUTPUT_FILE_H_

#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace warpline::client {

// Writes the pieces one after the other. A regular file is written under a temporary name beside it, then
// renamed: until then what was there is there, and after it a failure has left nothing behind. Links are
// followed and stay links, and a file that was there hands on its mode. Devices, pipes and standard output
// are written in place. Errors as those of SystemError(), without the path.
absl::Status WriteFile(const std::string& path, std::span<const std::string_view> pieces);

// Whether `path` is "-", or names the file or pipe that standard output is (as /dev/stdout does): renaming
// would take it away from those who have it open.
bool IsStandardOutput(const std::string& path);

// Whether what is written to the one path would replace, or follow, what was written to the other. Devices
// take both.
bool IsSameOutput(const std::string& a, const std::string& b);

// Whether `path` is "-" or names what standard output is, and that is a terminal.
bool IsTerminal(const std::string& path);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_CLI_OUTPUT_FILE_H_
