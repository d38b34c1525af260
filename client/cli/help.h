// The layout of the `warpline` program's help.
#ifndef WARPLINE_CLIENT_CLI_HELP_H_
#define WARPLINE_CLIENT_CLI_HELP_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "client/cli/args.h"

namespace warpline::client {

// Formats the help of a program with commands, and of each command. The usage comes first, then the options
// with their choices in wrapped lines. A command's own options come before the program's.
std::shared_ptr<CLI::FormatterBase> HelpFormatter();

// Wraps the text into lines of at most 110 columns, each indented to column `indent`. The caller has already
// indented the first line.
std::string Wrapped(std::string_view text, std::size_t indent);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_CLI_HELP_H_
