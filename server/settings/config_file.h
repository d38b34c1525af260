// The file of --config.
#ifndef WARPLINE_SERVER_SETTINGS_CONFIG_FILE_H_
#define WARPLINE_SERVER_SETTINGS_CONFIG_FILE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace warpline {

// One line of the file, which is TOML without tables: the names of flags and their values, each a string, a
// number, true or false, or an array of these, which is the same as a string with commas:
//
//   listen = ["0.0.0.0:50051", "unix:/run/warpline/grpc"]
//   max-inline-bytes = "256M"
//   lanes = 8
struct ConfigEntry {
  std::string name;
  std::string text;  // of the value, as a flag would have it
  std::size_t line = 0;
  bool is_boolean = false;
};

// In the order of their lines. NOT_FOUND or PERMISSION_DENIED for a file that cannot be read,
// INVALID_ARGUMENT with the line of what is no TOML or no value of a flag.
absl::StatusOr<std::vector<ConfigEntry>> ReadConfigFile(const std::string& path);

}  // namespace warpline

#endif  // WARPLINE_SERVER_SETTINGS_CONFIG_FILE_H_
