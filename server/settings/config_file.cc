#include "server/settings/config_file.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/status_macros.h"
#include "server/base/parse_toml.h"
#include "server/base/read_file.h"

namespace warpline {
namespace {

// Returns nothing if no flag can have such a value.
std::optional<std::string> TextOf(const toml::value& value) {
  if (value.is_string()) return CharactersOf(value);
  if (value.is_integer()) return absl::StrCat(value.as_integer());
  if (value.is_floating()) return absl::StrCat(value.as_floating());
  if (value.is_boolean()) return value.as_boolean() ? "true" : "false";
  if (!value.is_array()) return std::nullopt;
  std::vector<std::string> parts;
  for (const toml::value& part : value.as_array()) {
    std::optional<std::string> text = part.is_array() ? std::nullopt : TextOf(part);
    if (!text) return std::nullopt;
    parts.push_back(*std::move(text));
  }
  return absl::StrJoin(parts, ",");
}

}  // namespace

absl::StatusOr<std::vector<ConfigEntry>> ReadConfigFile(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  ASSIGN_OR_RETURN(const toml::value root, ParseToml(text, path));
  std::vector<ConfigEntry> entries;
  for (const auto& [name, value] : root.as_table()) {
    const std::size_t line = LineOf(value);
    std::optional<std::string> value_text = TextOf(value);
    if (!value_text) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ":", line, ": ", name, ": must be a string, a number, true, false or an array of these",
          name == "owner" ? "; owners stand in the file of --tokens" : ""));
    }
    entries.push_back({name, *std::move(value_text), line, value.is_boolean()});
  }
  std::sort(entries.begin(), entries.end(),
            [](const ConfigEntry& a, const ConfigEntry& b) { return a.line < b.line; });
  return entries;
}

}  // namespace warpline
