#include "server/observe/log.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/observe/line_writer.h"

namespace warpline {
namespace {

std::atomic<LogFormat> log_format = LogFormat::kLogfmt;

std::string LogfmtValue(std::string_view text) {
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return c > ' ' && c <= '~' && c != '"' && c != '=' && c != '\\';
  });
  if (plain) return std::string(text);
  return absl::StrCat("\"", absl::CEscape({text.data(), text.size()}), "\"");
}

// Clients choose some of the text, so it need not be UTF-8.
std::string JsonValue(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

// Never destroyed: threads may log until the process has ended.
LineWriter& Stderr() {
  static auto* const writer = new LineWriter(STDERR_FILENO);
  return *writer;
}

}  // namespace

void SetLogFormat(LogFormat format) { log_format = format; }

LogLine::LogLine(absl::Time time, std::string_view level, std::string_view message) : format_(log_format) {
  Add("time", absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone()));
  Add("level", level);
  Add("msg", message);
}

void LogLine::Add(std::string_view key, std::string_view value) {
  const bool json = format_ == LogFormat::kJson;
  const std::string_view before = json ? (text_.empty() ? "{" : ",") : (text_.empty() ? "" : " ");
  const std::string name = json ? absl::StrCat(JsonValue(key), ":") : absl::StrCat(std::string(key), "=");
  // The end of the line has at most two bytes.
  const std::size_t used = text_.size() + before.size() + name.size() + 2;
  for (;;) {
    const std::string shown = json ? JsonValue(value) : LogfmtValue(value);
    if (used + shown.size() <= kMaxBytes) {
      absl::StrAppend(&text_, std::string(before), name, shown);
      return;
    }
    if (value.empty()) return;
    value = value.substr(0, value.size() / 2);
  }
}

std::string LogLine::Finish() {
  text_ += format_ == LogFormat::kJson ? "}\n" : "\n";
  return std::move(text_);
}

void Log(std::string_view level, std::string_view message,
         absl::Span<const std::pair<std::string_view, std::string>> fields) {
  LogLine line(absl::Now(), level, message);
  for (const auto& [key, value] : fields) line.Add(key, value);
  Stderr().Write(line.Finish());
}

std::int64_t DroppedLogLines() { return Stderr().dropped(); }

}  // namespace warpline
