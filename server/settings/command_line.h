// Reads the settings of the daemon: its flags, its environment and its configuration file.
#ifndef WARPLINE_SERVER_SETTINGS_COMMAND_LINE_H_
#define WARPLINE_SERVER_SETTINGS_COMMAND_LINE_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/settings/options.h"

namespace warpline {

// A flag that was set, even if to its default.
struct Setting {
  std::string name;    // "max-jobs"
  std::string value;   // as it was given
  std::string source;  // "--max-jobs", "$WARPLINED_MAX_JOBS" or "warplined.toml:3"
};

struct CommandLine {
  enum class Action { kServe, kCheckConfig, kHelp, kVersion, kNewToken } action = Action::kServe;
  std::string new_token;  // the name of its owner
  ServerOptions options;
  std::vector<Setting> settings;  // in the order of --help
  // All that is wrong. Each error names the flag, the source of its value, the value and the limit; for an
  // unknown name it suggests the closest name.
  std::vector<std::string> errors;
};

// Returns the value of a variable, or nullptr.
using Environment = std::function<const char*(const char* name)>;

// A flag overrides the variable of its name (--max-jobs: $WARPLINED_MAX_JOBS), and a variable overrides the
// file of --config. An empty variable counts as not set. Other variables that begin with WARPLINED_ are
// ignored, because Kubernetes creates some.
CommandLine ParseCommandLine(int argc, const char* const* argv, const Environment& environment);

// Adds to `error`, which begins with a flag, where the flag was set, unless that was on the command line.
std::string WithSource(const std::string& error, const std::vector<Setting>& settings);

// Returns the text of --help: each flag with unit, range and default, and the worst-case memory of `options`.
std::string HelpText(const ServerOptions& options);

}  // namespace warpline

#endif  // WARPLINE_SERVER_SETTINGS_COMMAND_LINE_H_
