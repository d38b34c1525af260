// The thread that retries failed asynchronous calls.
#ifndef WARPLINE_CLIENT_SRC_RETRY_THREAD_H_
#define WARPLINE_CLIENT_SRC_RETRY_THREAD_H_

#include <chrono>
#include <functional>
#include <list>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include "absl/time/time.h"
#include "client/src/condition_variable.h"

namespace warpline::client {

// The thread starts with the first retry. Thread-safe.
class RetryThread {
 public:
  // The argument is true to make the call, false to give up.
  using Then = std::function<void(bool)>;

  // `pause` runs on the thread. It waits for the given time while the channel connects.
  explicit RetryThread(std::function<void(absl::Duration)> pause) : pause_(std::move(pause)) {}
  ~RetryThread() { Close(); }
  RetryThread(const RetryThread&) = delete;
  RetryThread& operator=(const RetryThread&) = delete;

  // Calls `then` on the thread, after the delay or when `stop` is requested. After Close, calls it at once on
  // the caller's thread.
  void After(absl::Duration delay, std::stop_token stop, Then then);
  // Gives up waiting retries, and ends the thread.
  void Close();

 private:
  using Clock = std::chrono::steady_clock;
  struct Waiting {
    Clock::time_point when;
    std::stop_token stop;
    Then then;
  };

  void Run();

  const std::function<void(absl::Duration)> pause_;
  std::mutex mutex_;
  ConditionVariable changed_;
  std::list<Waiting> waiting_;
  bool closed_ = false;
  std::thread thread_;
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_RETRY_THREAD_H_
