// A file that appears whole or not at all.
#ifndef WARPLINE_CLIENT_CLI_OUTPUT_FILE_H_
#define WARPLINE_CLIENT_CLI_OUTPUT_FILE_H_

#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace warpline::client {

// Writes the pieces one after the other. A regular file is written under a temporary name beside it, then
// renamed. Until then the old file is there, and a failure leaves nothing behind. Links are followed and stay
// links. The new file gets the mode of the old one. Devices, pipes and standard output are written in place.
// Errors are those of SystemError(), without the path.
absl::Status WriteFile(const std::string& path, std::span<const std::string_view> pieces);

// True if `path` is "-", or names the file or pipe that standard output is (as /dev/stdout does). Such a file
// must not be renamed: that would take it away from those who have it open.
bool IsStandardOutput(const std::string& path);

// True if the output to one path would replace, or follow, the output to the other. Devices take both.
bool IsSameOutput(const std::string& a, const std::string& b);

// True if standard output is a terminal, and `path` is "-" or names it.
bool IsTerminal(const std::string& path);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_CLI_OUTPUT_FILE_H_
