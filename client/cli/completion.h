// Scripts that have a shell complete the command lines of the `warpline` program.
#ifndef WARPLINE_CLIENT_CLI_COMPLETION_H_
#define WARPLINE_CLIENT_CLI_COMPLETION_H_

#include <string>

namespace warpline::client {

// Made from the tables of flags.h: commands, flags, and their values where these can be listed; files for
// everything else.
std::string BashCompletion();
std::string ZshCompletion();

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_CLI_COMPLETION_H_
