#include "server/observe/limited_log.h"

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/observe/log.h"

namespace warpline {
namespace {

constexpr int kMaxLinesPerSecond = 10;

}  // namespace

int LimitedLog::Take() {
  MutexLock lock(&mutex_);
  const std::int64_t now = absl::ToUnixSeconds(absl::Now());
  if (now != second_) lines_ = 0;
  second_ = now;
  if (lines_ == kMaxLinesPerSecond) {
    ++left_out_;
    return -1;
  }
  ++lines_;
  return std::exchange(left_out_, 0);
}

void LimitedLog::Write(std::string_view level, std::string_view message,
                       std::vector<std::pair<std::string_view, std::string>> fields) {
  const int left_out = Take();
  if (left_out < 0) return;
  if (left_out > 0) fields.emplace_back("lines_left_out", absl::StrCat(left_out));
  Log(level, message, fields);
}

}  // namespace warpline
