// Log lines in logfmt on stderr: time=... level=... msg="..." key=value ...
#ifndef WARPLINE_SERVER_OBSERVE_LOG_H_
#define WARPLINE_SERVER_OBSERVE_LOG_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/time/time.h"
#include "absl/types/span.h"

namespace warpline {

// BeginLogLine makes the beginning of a line; AppendLogField adds a field. Values are quoted if logfmt
// requires it, so that a value cannot look like another field or line.
std::string BeginLogLine(absl::Time time, std::string_view level, std::string_view message);
void AppendLogField(std::string& line, std::string_view key, std::string_view value);

// Thread-safe; one line is one write. A line that stderr does not accept at once is dropped (see LineWriter),
// so that serving threads never wait for the reader of the log.
void Log(std::string_view level, std::string_view message,
         absl::Span<const std::pair<std::string_view, std::string>> fields = {});

// Returns how many lines were dropped since the start of the process.
std::int64_t DroppedLogLines();

}  // namespace warpline

#endif  // WARPLINE_SERVER_OBSERVE_LOG_H_
