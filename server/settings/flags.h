// All flags of the daemon, with unit, range and default.
#ifndef WARPLINE_SERVER_SETTINGS_FLAGS_H_
#define WARPLINE_SERVER_SETTINGS_FLAGS_H_

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "server/settings/flag_values.h"
#include "server/settings/options.h"

namespace warpline {

// Errors of values are added here: "--lanes=65: must be a number from 0 to 64".
using FlagErrors = std::vector<std::string>;

// Adds --name, whose value is called `value` in the help. If the flag is given twice, the last value counts.
// `errors` outlives `app`.
void AddFlag(CLI::App& app, FlagErrors& errors, const std::string& name, const char* value, SetValue set,
             const char* help);

// Adds all flags. They write to `options`, which must outlive `app`, while `app` parses them.
void AddFlags(CLI::App& app, FlagErrors& errors, ServerOptions& options);

}  // namespace warpline

#endif  // WARPLINE_SERVER_SETTINGS_FLAGS_H_
