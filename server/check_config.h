// warplined --check-config, and what the log says of settings.
#ifndef WARPLINE_SERVER_CHECK_CONFIG_H_
#define WARPLINE_SERVER_CHECK_CONFIG_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/command_line.h"
#include "server/tuning/tuning_file.h"

namespace warpline {

// What is set, as a file for --config that says of each line where it comes from.
std::string SettingsText(const CommandLine& line);

// What the tuning file at `path` has, in lines for people: how many choices for each kind of device, and each
// variant that is not tried there any more.
std::string TuningText(const std::string& path, const TuningFile& file);

// Whether the files of --tls-cert, --tls-key, --tls-client-ca, --tokens and --tuning-file hold what they
// should. Prints TuningText of the last one. Looks at no device, and opens no port.
absl::Status CheckFiles(const ServerOptions& options);

// Prints both, and what memory may be needed. The exit code: 0, or 2 if something is not valid.
int CheckConfig(const CommandLine& line);

// A line for each setting that does not come from the command line, which `ps` shows.
void LogSettings(const std::vector<Setting>& settings);

}  // namespace warpline

#endif  // WARPLINE_SERVER_CHECK_CONFIG_H_
