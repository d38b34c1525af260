// Parses files in TOML.
#ifndef WARPLINE_SERVER_BASE_PARSE_TOML_H_
#define WARPLINE_SERVER_BASE_PARSE_TOML_H_

#include <cstddef>
#include <string>
#include <toml.hpp>

#include "absl/status/statusor.h"

namespace warpline {

// Tables, arrays and keys may be nested this deep. toml11 parses them by recursion.
inline constexpr int kMaxTomlDepth = 64;

// INVALID_ARGUMENT with `path` and the number of the line, but not the line itself, which may hold a secret.
absl::StatusOr<toml::value> ParseToml(const std::string& text, const std::string& path);

// Return the line of a value, and the characters of a string. toml11 4 has other names for these than 3.
std::size_t LineOf(const toml::value& value);
const std::string& CharactersOf(const toml::value& string);

}  // namespace warpline

#endif  // WARPLINE_SERVER_BASE_PARSE_TOML_H_
