// Log lines on stderr, in logfmt or as JSON.
#ifndef WARPLINE_SERVER_OBSERVE_LOG_H_
#define WARPLINE_SERVER_OBSERVE_LOG_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/time/time.h"
#include "absl/types/span.h"

namespace warpline {

// kLogfmt: time=... level=... msg="..." key=value. kJson:
// {"time":"...","level":"...","msg":"...","key":"value"}, with all values as strings.
enum class LogFormat { kLogfmt, kJson };

// Sets the format of all lines that begin after this call. The default is kLogfmt.
void SetLogFormat(LogFormat format);

// One line. Values are escaped, so that no value can look like another field or line. A value that would make
// the line longer than kMaxBytes is shortened, or left out.
class LogLine {
 public:
  // PIPE_BUF of Linux: a pipe accepts a write of this size completely or not at all.
  static constexpr std::size_t kMaxBytes = 4096;

  LogLine(absl::Time time, std::string_view level, std::string_view message);
  void Add(std::string_view key, std::string_view value);
  // Returns the line with its end. Call once.
  std::string Finish();

 private:
  const LogFormat format_;
  std::string text_;
};

// Thread-safe; one line is one write. A line that stderr does not accept at once is dropped (see LineWriter),
// so that serving threads never wait for the reader of the log.
void Log(std::string_view level, std::string_view message,
         absl::Span<const std::pair<std::string_view, std::string>> fields = {});

// Returns how many lines were dropped since the start of the process.
std::int64_t DroppedLogLines();

}  // namespace warpline

#endif  // WARPLINE_SERVER_OBSERVE_LOG_H_
