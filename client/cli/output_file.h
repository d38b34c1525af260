// Writes a file so that it appears either completely or not at all.
#ifndef WARPLINE_CLIENT_CLI_OUTPUT_FILE_H_
#define WARPLINE_CLIENT_CLI_OUTPUT_FILE_H_

#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace warpline::client {

// Writes the pieces one after the other. A regular file is first written under a temporary name in the same
// folder, then renamed. Until then the old file exists, and a failure leaves nothing behind. Links are
// followed and stay links. The new file gets the mode of the old one. Devices, pipes and standard output are
// written in place. Errors are those of SystemError(), without the path.
absl::Status WriteFile(const std::string& path, std::span<const std::string_view> pieces);

// True if `path` is "-", or names the same file or pipe as standard output (as /dev/stdout does). A file must
// not be renamed over it: processes that have it open would lose it.
bool IsStandardOutput(const std::string& path);

// True if the output to one path would replace, or follow, the output to the other. Devices may be used
// twice.
bool IsSameOutput(const std::string& a, const std::string& b);

// True if standard output is a terminal, and `path` is "-" or names that terminal.
bool IsTerminal(const std::string& path);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_CLI_OUTPUT_FILE_H_
