#include "server/base/parse_toml.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <sstream>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace warpline {
namespace {

// What toml11 says of a key or a table that is there twice, in words of ours: as it shows the line of the
// first.
// Only where the mark under that line says what is there: else the name is that of a table that holds it.
std::string Plainly(const std::string& message, const std::string& what) {
  constexpr std::string_view kMarks[] = {"value already exists here", "table already exists here"};
  const bool is_itself = std::any_of(std::begin(kMarks), std::end(kMarks),
                                     [&](auto mark) { return what.find(mark) != std::string::npos; });
  constexpr std::string_view kTwice = "\") already exists";
  const std::size_t end = message.find(kTwice), begin = message.find("(\"");
  if (!is_itself || end == std::string::npos || begin >= end) return message;
  return absl::StrCat(message.substr(begin + 1, end - begin), " is given twice, here first");
}

// The line number that toml11 has in its messages, but not the line.
std::string WithoutTheLine(const std::string& what) {
  const std::size_t end = what.find('\n');
  const std::size_t bar = what.find(" | ", end);
  const std::size_t number = bar == std::string::npos ? bar : what.rfind('\n', bar);
  if (number == std::string::npos) return Plainly(what.substr(0, end), what);
  return absl::StrCat("line ", absl::StripAsciiWhitespace(what.substr(number, bar - number)), ": ",
                      Plainly(what.substr(0, end), what));
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
