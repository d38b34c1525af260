#include "server/observe/log.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/observe/line_writer.h"

namespace warpline {
namespace {

std::string Value(std::string_view text) {
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return c > ' ' && c <= '~' && c != '"' && c != '=' && c != '\\';
  });
  if (plain) return std::string(text);
  return absl::StrCat("\"", absl::CEscape({text.data(), text.size()}), "\"");
}

// Never destroyed: threads may log until the process has ended.
LineWriter& Stderr() {
  static auto* const writer = new LineWriter(STDERR_FILENO);
  return *writer;
}

}  // namespace

std::string BeginLogLine(absl::Time time, std::string_view level, std::string_view message) {
  return absl::StrCat("time=", absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone()),
                      " level=", std::string(level), " msg=", Value(message));
}

void AppendLogField(std::string& line, std::string_view key, std::string_view value) {
  absl::StrAppend(&line, " ", std::string(key), "=", Value(value));
}

void Log(std::string_view level, std::string_view message,
         absl::Span<const std::pair<std::string_view, std::string>> fields) {
  std::string line = BeginLogLine(absl::Now(), level, message);
  for (const auto& [key, value] : fields) AppendLogField(line, key, value);
  line += '\n';
  Stderr().Write(std::move(line));
}

std::int64_t DroppedLogLines() { return Stderr().dropped(); }

}  // namespace warpline
