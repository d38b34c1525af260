#include "client/src/retry_thread.h"

#include <algorithm>
#include <utility>

namespace warpline::client {
namespace {

// Maximum delay of a retry beyond its time.
constexpr absl::Duration kStep = absl::Milliseconds(10);

}  // namespace

void RetryThread::After(absl::Duration delay, std::stop_token stop, Then then) {
  std::unique_lock lock(mutex_);
  if (closed_) {
    lock.unlock();
    return then(false);
  }
  waiting_.push_back({Clock::now() + absl::ToChronoNanoseconds(delay), std::move(stop), std::move(then)});
  if (!thread_.joinable()) thread_ = std::thread(&RetryThread::Run, this);
  changed_.notify_all();
}

void RetryThread::Close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void RetryThread::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return closed_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const Clock::time_point now = Clock::now();
    const auto ready = std::find_if(waiting_.begin(), waiting_.end(), [&](const Waiting& one) {
      return closed_ || one.when <= now || one.stop.stop_requested();
    });
    if (ready != waiting_.end()) {
      const Waiting one = std::move(*ready);
      waiting_.erase(ready);
      const bool again = !closed_ && !one.stop.stop_requested();
      lock.unlock();
      one.then(again);
      lock.lock();
      continue;
    }
    lock.unlock();
    pause_(kStep);
    lock.lock();
  }
}

}  // namespace warpline::client
