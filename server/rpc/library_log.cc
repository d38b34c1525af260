#include "server/rpc/library_log.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/base/mutex.h"
#include "server/observe/log.h"

namespace warpline {
namespace {

constexpr int kMaxLinesPerSecond = 10;

struct Budget {
  Mutex mutex;
  std::int64_t second ABSL_GUARDED_BY(mutex) = 0;
  int lines ABSL_GUARDED_BY(mutex) = 0;
  int left_out ABSL_GUARDED_BY(mutex) = 0;  // since the last line

  // The number of lines that were left out before this one; negative if this one is to be.
  int Take() {
    MutexLock lock(&mutex);
    const std::int64_t now = absl::ToUnixSeconds(absl::Now());
    if (now != second) lines = 0;
    second = now;
    if (lines == kMaxLinesPerSecond) {
      ++left_out;
      return -1;
    }
    ++lines;
    return std::exchange(left_out, 0);
  }
};

void Write(const char* library, const char* level, std::string_view file, int line, const std::string& reason,
           int left_out) {
  const std::string where = absl::StrCat(std::string(file.substr(file.rfind('/') + 1)), ":", line);
  if (left_out == 0) return Log(level, library, {{"reason", reason}, {"where", where}});
  Log(level, library, {{"reason", reason}, {"where", where}, {"lines_left_out", absl::StrCat(left_out)}});
}

// The libraries keep no state for a log function, so their budgets are those of the process.
void WriteOfGrpc(gpr_log_func_args* line) {
  static Budget* const budget = new Budget;
  const int left_out = line->severity == GPR_LOG_SEVERITY_ERROR ? budget->Take() : 0;
  if (left_out < 0) return;
  const char* const level = line->severity == GPR_LOG_SEVERITY_ERROR  ? "warning"
                            : line->severity == GPR_LOG_SEVERITY_INFO ? "info"
                                                                      : "debug";
  Write("gRPC", level, line->file, line->line, line->message, left_out);
}

void WriteOfProtobuf(google::protobuf::LogLevel, const char* file, int line, const std::string& message) {
  static Budget* const budget = new Budget;
  if (const int left_out = budget->Take(); left_out >= 0) {
    Write("protobuf", "warning", file, line, message, left_out);
  }
}

}  // namespace

void TakeOverLibraryLogs() {
  gpr_set_log_function(WriteOfGrpc);
  google::protobuf::SetLogHandler(WriteOfProtobuf);
}

}  // namespace warpline
