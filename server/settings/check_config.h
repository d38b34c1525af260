// warplined --check-config, and what the log says of settings.
#ifndef WARPLINE_SERVER_SETTINGS_CHECK_CONFIG_H_
#define WARPLINE_SERVER_SETTINGS_CHECK_CONFIG_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/settings/command_line.h"

namespace warpline {

// Returns the settings in the form of a file for --config. Each line says where its setting comes from.
std::string SettingsText(const CommandLine& line);

// Checks that the files of --tls-cert, --tls-key, --tls-client-ca and --tokens hold what they should. Looks
// at no device, and opens no port.
absl::Status CheckFiles(const ServerOptions& options);

// Prints both, and what memory may be needed. The exit code: 0, or 2 if something is not valid.
int CheckConfig(const CommandLine& line);

// A line for each setting that does not come from the command line, which `ps` shows.
void LogSettings(const std::vector<Setting>& settings);

}  // namespace warpline

#endif  // WARPLINE_SERVER_SETTINGS_CHECK_CONFIG_H_
