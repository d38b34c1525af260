#include "server/observe/line_writer.h"

#include <poll.h>
#include <unistd.h>

#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/observe/log.h"

namespace warpline {
namespace {

constexpr std::size_t kMaxWaiting = 1024;  // lines

}  // namespace

void LineWriter::Write(std::string line) {
  {
    MutexLock lock(&mutex_);
    if (waiting_.size() >= kMaxWaiting) {
      dropped_.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    waiting_.push_back(std::move(line));
    if (std::exchange(writing_, true)) return;
  }
  for (;;) {
    std::vector<std::string> lines;
    {
      MutexLock lock(&mutex_);
      lines.swap(waiting_);
      writing_ = !lines.empty();
    }
    if (lines.empty()) return;
    for (const std::string& next : lines) WriteOrDrop(next);
  }
}

void LineWriter::WriteOrDrop(const std::string& line) {
  const std::int64_t lost = dropped() - told_;
  if (lost > 0) {
    LogLine note(absl::Now(), "warning", "log lines are lost: nobody takes them");
    note.Add("lines", absl::StrCat(lost));
    if (WriteNow(note.Finish())) told_ += lost;
  }
  if (!WriteNow(line)) dropped_.fetch_add(1, std::memory_order_relaxed);
}

bool LineWriter::WriteNow(const std::string& line) const {
  pollfd room{.fd = fd_, .events = POLLOUT, .revents = 0};
  if (poll(&room, 1, 0) != 1 || (room.revents & POLLOUT) == 0) return false;
  return write(fd_, line.data(), line.size()) == static_cast<ssize_t>(line.size());
}

}  // namespace warpline
