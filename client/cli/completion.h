// Shell scripts that complete the command lines of the `warpline` program.
#ifndef WARPLINE_CLIENT_CLI_COMPLETION_H_
#define WARPLINE_CLIENT_CLI_COMPLETION_H_

#include <string>

#include "client/cli/args.h"

namespace warpline::client {

// Return the completion scripts of the program. They complete its commands, flags and arguments, and values
// where they can be listed. They complete file names where a file is expected.
std::string BashCompletion(const CLI::App& program);
std::string ZshCompletion(const CLI::App& program);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_CLI_COMPLETION_H_
