#include "server/rpc/upload_watchdog.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/clock.h"

namespace warpline {
namespace {

constexpr absl::Duration kPeriod = absl::Milliseconds(250);

// HTTP/2's first window: a client that has sent less is not waiting for us.
constexpr std::uint64_t kProgressBytes = 64 << 10;

// A drain divides the send timeout by this: the default becomes two seconds.
constexpr int kDrainShare = 15;

// A message that arrives at network speed takes less time, unless it is very large.
constexpr absl::Duration kSlowAfter = absl::Milliseconds(100);

}  // namespace

UploadWatchdog::UploadWatchdog(std::vector<PollingThread*> threads, absl::Duration send_timeout)
    : threads_(std::move(threads)),
      send_timeout_(send_timeout),
      progress_{.window = send_timeout, .bytes = kProgressBytes},
      thread_([this] { Loop(); }) {}

UploadWatchdog::~UploadWatchdog() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void UploadWatchdog::Drain() {
  MutexLock lock(&mutex_);
  progress_ = {.window = send_timeout_ / kDrainShare, .bytes = kProgressBytes / kDrainShare};
}

void UploadWatchdog::Loop() {
  for (;;) {
    Uploads::Progress progress;
    {
      MutexLock lock(&mutex_);
      if (mutex_.AwaitUntil([this] { return stopping_; }, After(kPeriod))) return;
      progress = progress_;
    }
    int given_up = 0;
    for (PollingThread* thread : threads_) {
      thread->BetweenTags(
          [&] { given_up += thread->uploads().Look(progress, kSlowAfter, MonotonicClock::now()); });
    }
    if (given_up == 0) continue;
    log_.Write("warning", "uploads cancelled: they stand still", {{"calls", absl::StrCat(given_up)}});
  }
}

}  // namespace warpline
