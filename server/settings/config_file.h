// Reads the file of --config.
#ifndef WARPLINE_SERVER_SETTINGS_CONFIG_FILE_H_
#define WARPLINE_SERVER_SETTINGS_CONFIG_FILE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace warpline {

// One line of the file, which is TOML without tables: the name of a flag and its value. A value is a string,
// a number, true or false, or an array of these, which is the same as a string with commas:
//
//   listen = ["0.0.0.0:50051", "unix:/run/warpline/grpc"]
//   max-inline-bytes = "256M"
//   lanes = 8
struct ConfigEntry {
  std::string name;
  std::string text;  // of the value, as it would be written for a flag
  std::size_t line = 0;
  bool is_boolean = false;
};

// Returns the entries in the order of their lines. NOT_FOUND or PERMISSION_DENIED if the file cannot be read;
// INVALID_ARGUMENT, with the line, for anything that is not valid TOML or not a possible value of a flag.
absl::StatusOr<std::vector<ConfigEntry>> ReadConfigFile(const std::string& path);

}  // namespace warpline

#endif  // WARPLINE_SERVER_SETTINGS_CONFIG_FILE_H_
