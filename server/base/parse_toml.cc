#include "server/base/parse_toml.h"

#include <algorithm>
#include <exception>
#include <sstream>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"

namespace warpline {
namespace {

// Returns the first line of toml11's message. A duplicate gets our own text, because toml11 shows the line of
// the first occurrence. If the mark under that line says that a value or table is there, the quoted name is
// the duplicate; otherwise it is that of a table that contains it.
std::string Summary(const std::string& what) {
  std::string line = what.substr(0, what.find('\n'));
  const std::size_t begin = line.find("(\""), end = line.find("\") already exists");
  const bool marks_it = absl::StrContains(what, "value already exists here") ||
                        absl::StrContains(what, "table already exists here");
  if (!marks_it || end == std::string::npos || begin >= end) return line;
  return absl::StrCat(line.substr(begin + 1, end - begin), " is given twice, here first");
}

// Returns toml11's message with the line number, but without the text of the line.
std::string WithoutTheLine(const std::string& what) {
  const std::size_t bar = what.find(" | ", what.find('\n'));
  const std::size_t number = bar == std::string::npos ? bar : what.rfind('\n', bar);
  if (number == std::string::npos) return Summary(what);
  return absl::StrCat("line ", absl::StripAsciiWhitespace(what.substr(number, bar - number)), ": ",
                      Summary(what));
}

// Walks through TOML text and skips the contents of strings and comments.
class Walker {
 public:
  explicit Walker(std::string_view text) : text_(text) {}

  // Returns the next character outside strings and comments; 0 at the end.
  char Next() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c == '"' || c == '\'') {
        SkipString(c);
      } else {
        ++at_;
        if (c == '\n') ++line_;
        return c;
      }
    }
    return 0;
  }
  int line() const { return line_; }

 private:
  void SkipString(char quote) {
    const std::string triple(3, quote);
    const std::string_view end =
        text_.substr(at_, 3) == triple ? std::string_view(triple) : std::string_view(triple).substr(0, 1);
    at_ += end.size();
    while (at_ < text_.size() && text_.substr(at_, end.size()) != end) {
      if (text_[at_] == '\n') {
        if (end.size() == 1) return;  // an error that the parser will find
        ++line_;
      }
      at_ += quote == '"' && text_[at_] == '\\' ? 2 : 1;
    }
    at_ += end.size();
  }

  const std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
};

absl::Status CheckDepth(std::string_view text, const std::string& path) {
  Walker walker(text);
  int brackets = 0, dots = 0;  // dots: in this line
  for (char c = walker.Next(); c != 0; c = walker.Next()) {
    if (c == '\n') dots = 0;
    if (c == '[' || c == '{') ++brackets;
    if (c == ']' || c == '}') brackets = std::max(0, brackets - 1);
    if (c == '.') ++dots;
    if (brackets > kMaxTomlDepth || dots > kMaxTomlDepth) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ":", walker.line(), ": is nested more than ", kMaxTomlDepth, " deep"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<toml::value> ParseToml(const std::string& text, const std::string& path) {
  RETURN_IF_ERROR(CheckDepth(text, path));
  try {
    std::istringstream in(text);
    return toml::parse(in, path);
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is no TOML: ", WithoutTheLine(error.what())));
  }
}

#if TOML11_VERSION_MAJOR >= 4
std::size_t LineOf(const toml::value& value) { return value.location().first_line_number(); }
const std::string& CharactersOf(const toml::value& string) { return string.as_string(); }
#else
std::size_t LineOf(const toml::value& value) { return value.location().line(); }
const std::string& CharactersOf(const toml::value& string) { return string.as_string().str; }
#endif

}  // namespace warpline
