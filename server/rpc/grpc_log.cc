#include "server/rpc/grpc_log.h"

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

// gRPC keeps no state for a log function, so this is the one of the process.
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

void Write(gpr_log_func_args* line) {
  static Budget* const budget = new Budget;
  const int left_out = line->severity == GPR_LOG_SEVERITY_ERROR ? budget->Take() : 0;
  if (left_out < 0) return;
  const std::string_view file = line->file;
  const std::string where = absl::StrCat(std::string(file.substr(file.rfind('/') + 1)), ":", line->line);
  const char* const level = line->severity == GPR_LOG_SEVERITY_ERROR  ? "warning"
                            : line->severity == GPR_LOG_SEVERITY_INFO ? "info"
                                                                      : "debug";
  if (left_out == 0) return Log(level, "gRPC", {{"reason", line->message}, {"where", where}});
  Log(level, "gRPC",
      {{"reason", line->message}, {"where", where}, {"lines_left_out", absl::StrCat(left_out)}});
}

}  // namespace

void TakeOverGrpcLog() { gpr_set_log_function(Write); }

}  // namespace warpline
