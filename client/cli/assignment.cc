#include "client/cli/assignment.h"

#include <algorithm>

#include "absl/strings/ascii.h"

namespace warpline::client {
namespace {

bool IsName(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '_' || c == '.' || c == '-';
  });
}

}  // namespace

Assignment SplitAssignment(std::string_view word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos) return {"", "", std::string(word)};
  const std::string_view left = word.substr(0, equals);
  const std::size_t colon = left.find(':');
  const std::string_view name = left.substr(0, colon);
  const std::string_view type = colon == std::string_view::npos ? "" : left.substr(colon + 1);
  if (!IsName(name) || (colon != std::string_view::npos && !IsName(type))) return {"", "", std::string(word)};
  return {std::string(name), std::string(type), std::string(word.substr(equals + 1))};
}

}  // namespace warpline::client
