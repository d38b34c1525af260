// What the `warpline` program says of itself.
#ifndef WARPLINE_CLIENT_CLI_HELP_H_
#define WARPLINE_CLIENT_CLI_HELP_H_

#include <string>

#include "client/cli/flags.h"

namespace warpline::client {

// Of one command, or of the program if it is null.
std::string HelpText(const CommandSpec* command);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_CLI_HELP_H_
