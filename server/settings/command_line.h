// Reads what the daemon is asked to do: its flags, its environment and its configuration file.
#ifndef WARPLINE_SERVER_SETTINGS_COMMAND_LINE_H_
#define WARPLINE_SERVER_SETTINGS_COMMAND_LINE_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/settings/options.h"

namespace warpline {

// A flag that has another value than its default, or has been given it.
struct Setting {
  std::string name;    // "max-jobs"
  std::string value;   // as it was written
  std::string source;  // "--max-jobs", "$WARPLINED_MAX_JOBS" or "warplined.toml:3"
};

struct CommandLine {
  enum class Action { kServe, kCheckConfig, kHelp, kVersion, kNewToken } action = Action::kServe;
  std::string new_token;  // whose
  ServerOptions options;
  std::vector<Setting> settings;  // in the order of --help
};

// The value of a variable, or nullptr.
using Environment = std::function<const char*(const char* name)>;

// A flag beats the variable of its name (--max-jobs: $WARPLINED_MAX_JOBS), and a variable beats the file of
// --config. An empty variable is as one that is not set, and others that begin with WARPLINED_ mean nothing:
// Kubernetes makes some. INVALID_ARGUMENT naming the flag, where its value comes from, the value and the
// limit; for a name that there is not, with the nearest that there is.
absl::StatusOr<CommandLine> ParseCommandLine(int argc, const char* const* argv,
                                             const Environment& environment);

// `status`, whose message begins with the flag that it is about, with where that has been set if that was not
// on the command line.
absl::Status WithSource(const absl::Status& status, const std::vector<Setting>& settings);

// The text of --help: each flag with unit, range and default, and the worst-case memory of `options`.
std::string HelpText(const ServerOptions& options);

}  // namespace warpline

#endif  // WARPLINE_SERVER_SETTINGS_COMMAND_LINE_H_
