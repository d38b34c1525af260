// warplined --check-config, and the log lines about settings.
#ifndef WARPLINE_SERVER_SETTINGS_CHECK_CONFIG_H_
#define WARPLINE_SERVER_SETTINGS_CHECK_CONFIG_H_

#include <string>
#include <vector>

#include "server/settings/command_line.h"

namespace warpline {

// Returns the settings in the form of a file for --config. Each line says where its setting was made.
std::string SettingsText(const CommandLine& line);

// Checks the contents of the files of --tls-cert, --tls-key, --tls-client-ca and --tokens. Does not open
// devices or ports. Returns an error for each that is not valid.
std::vector<std::string> CheckFiles(const ServerOptions& options);

// Prints each error to stderr.
void PrintErrors(const std::vector<std::string>& errors);

// Prints the settings, all errors of the command line and of the files, and the memory that may be needed.
// Returns the exit code: 0, or 2 if something is not valid.
int CheckConfig(const CommandLine& line);

// Logs each setting that was not made on the command line, which `ps` shows.
void LogSettings(const std::vector<Setting>& settings);

}  // namespace warpline

#endif  // WARPLINE_SERVER_SETTINGS_CHECK_CONFIG_H_
