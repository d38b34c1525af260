#include "server/base/parse_toml.h"

#include <exception>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace warpline {
namespace {

// The first line of what toml11 says. Of what is there twice, in words of ours, as the line that it shows is
// that of the first: where the mark under that line says what is there, else the name is that of a table that
// holds it.
std::string Summary(const std::string& what) {
  std::string line = what.substr(0, what.find('\n'));
  const std::size_t begin = line.find("(\""), end = line.find("\") already exists");
  const bool marks_it = absl::StrContains(what, "value already exists here") ||
                        absl::StrContains(what, "table already exists here");
  if (!marks_it || end == std::string::npos || begin >= end) return line;
  return absl::StrCat(line.substr(begin + 1, end - begin), " is given twice, here first");
}

// The line number that toml11 has in its messages, but not the line.
std::string WithoutTheLine(const std::string& what) {
  const std::size_t bar = what.find(" | ", what.find('\n'));
  const std::size_t number = bar == std::string::npos ? bar : what.rfind('\n', bar);
  if (number == std::string::npos) return Summary(what);
  return absl::StrCat("line ", absl::StripAsciiWhitespace(what.substr(number, bar - number)), ": ",
                      Summary(what));
}

}  // namespace

absl::StatusOr<toml::value> ParseToml(const std::string& text, const std::string& path) {
  try {
    std::istringstream in(text);
    return toml::parse(in, path);
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is no TOML: ", WithoutTheLine(error.what())));
  }
}

}  // namespace warpline
