#include "server/observe/access_log.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/base/clock.h"
#include "server/observe/log.h"

namespace warpline {
namespace {

// How long lines wait, so that several are written together.
constexpr absl::Duration kPeriod = absl::Milliseconds(20);
// The maximum number of waiting records, of about 1 KiB each.
constexpr std::size_t kMaxWaiting = 32768;
// The maximum bytes of a field that a client has sent.
constexpr std::size_t kMaxOfField = 256;
// The time for writing the remaining lines at the end.
constexpr absl::Duration kToStop = absl::Seconds(1);
constexpr int kPatienceMs = 100;
constexpr absl::Duration kReopenPeriod = absl::Seconds(1);

std::string LineOf(const AccessRecord& record) {
  LogLine line(record.ended, "info", "call");
  const auto add = [&](std::string_view key, const std::string& value) {
    if (!value.empty()) line.Add(key, value);
  };
  add("method", record.method);
  add("code", record.code);
  add("owner", record.owner);
  add("client", record.client);
  add("request_id", record.request_id);
  add("traceparent", record.trace_parent);
  add("seconds", absl::StrFormat("%.6f", record.seconds));
  add("request_bytes", absl::StrCat(record.request_bytes));
  add("response_bytes", absl::StrCat(record.response_bytes));
  add("reason", record.reason);
  return line.Finish();
}

// Returns whether the whole text could be written. If not, errno is the reason.
bool WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    // A pipe that nobody reads has no room, so the wait has a limit.
    pollfd room{.fd = fd, .events = POLLOUT, .revents = 0};
    if (poll(&room, 1, kPatienceMs) == 0) {
      errno = EAGAIN;
      return false;
    }
    const ssize_t written = write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

// O_NONBLOCK: does not wait for the reader of a pipe.
UniqueFd OpenToAppend(const std::string& path) {
  return UniqueFd(open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0640));
}

}  // namespace

absl::StatusOr<std::unique_ptr<AccessLog>> AccessLog::Open(const std::string& path, Metrics& metrics) {
  if (path == "-") return std::unique_ptr<AccessLog>(new AccessLog("", UniqueFd(), metrics));
  UniqueFd file = OpenToAppend(path);
  // ENXIO: a pipe that has no reader.
  if (!file.ok() && errno != ENXIO) {
    return absl::InvalidArgumentError(absl::StrCat("--access-log=", path, ": ", std::strerror(errno)));
  }
  return std::unique_ptr<AccessLog>(new AccessLog(path, std::move(file), metrics));
}

AccessLog::AccessLog(std::string path, UniqueFd file, Metrics& metrics)
    : path_(std::move(path)),
      file_(std::move(file)),
      written_(metrics.AccessLogLines("written")),
      dropped_(metrics.AccessLogLines("dropped")),
      thread_([this] { Loop(); }) {}

AccessLog::~AccessLog() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void AccessLog::Add(AccessRecord record) {
  for (std::string* text :
       {&record.method, &record.reason, &record.owner, &record.client, &record.request_id}) {
    if (text->size() > kMaxOfField) *text = text->substr(0, kMaxOfField);
  }
  {
    MutexLock lock(&mutex_);
    if (waiting_.size() < kMaxWaiting) {
      waiting_.push_back(std::move(record));
      return;
    }
  }
  dropped_.Add();
}

void AccessLog::Loop() {
  for (bool stopping = false; !stopping;) {
    std::vector<AccessRecord> records;
    {
      // The end of a call wakes nobody up: lines are written once per period.
      MutexLock lock(&mutex_);
      stopping = mutex_.AwaitUntil([this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return stopping_; },
                                   After(kPeriod));
      records.swap(waiting_);
    }
    Write(records, stopping ? After(kToStop) : kNever);
  }
}

void AccessLog::Write(const std::vector<AccessRecord>& records, MonotonicTime deadline) {
  if (open_anew_.exchange(false) && !path_.empty()) OpenByName();
  if (!path_.empty() && !file_.ok()) Reopen();
  const int fd = path_.empty() ? STDERR_FILENO : file_.get();
  // Each line is one write, so that lines stay whole even if the normal log goes to the same place.
  std::size_t written = 0;
  errno = fd < 0 ? ENXIO : ETIMEDOUT;
  while (fd >= 0 && written < records.size() && MonotonicClock::now() < deadline) {
    // If the last line was written only in part, end it first.
    if (!WriteAll(fd, (failing_ && written == 0 ? "\n" : "") + LineOf(records[written]))) break;
    ++written;
  }
  const int reason = errno;
  const std::size_t lost = records.size() - written;
  written_.Add(static_cast<double>(written));
  dropped_.Add(static_cast<double>(lost));
  if (lost > 0 && !failing_ && !path_.empty()) {
    Log("warning", "lines of the access log are lost", {{"reason", std::strerror(reason)}});
  }
  if (lost > 0 && reason == EPIPE && !path_.empty()) file_.Reset();
  if (!records.empty()) failing_ = lost > 0;
}

void AccessLog::OpenByName() {
  UniqueFd file = OpenToAppend(path_);
  if (file.ok()) {
    file_ = std::move(file);
  } else {
    Log("warning", "the access log cannot be opened anew: lines go on to the file that is open",
        {{"path", path_}, {"reason", std::strerror(errno)}});
  }
}

void AccessLog::Reopen() {
  if (MonotonicClock::now() < next_try_) return;
  file_ = OpenToAppend(path_);
  next_try_ = After(kReopenPeriod);
}

}  // namespace warpline
