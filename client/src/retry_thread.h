// The thread that makes failed calls again which nobody waits for.
#ifndef WARPLINE_CLIENT_SRC_RETRY_THREAD_H_
#define WARPLINE_CLIENT_SRC_RETRY_THREAD_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include "absl/time/time.h"

namespace warpline::client {

// It starts with the first retry. Thread-safe.
class RetryThread {
 public:
  // True: make the call. False: give it up.
  using Then = std::function<void(bool)>;

  // `pause` is called on the thread, to wait for so long while the channel connects.
  explicit RetryThread(std::function<void(absl::Duration)> pause) : pause_(std::move(pause)) {}
  ~RetryThread() { Close(); }
  RetryThread(const RetryThread&) = delete;
  RetryThread& operator=(const RetryThread&) = delete;

  // Calls `then` after the delay, or when `stop` is requested, on the thread; after Close, at once on the
  // caller's.
  void After(absl::Duration delay, std::stop_token stop, Then then);
  // Gives up what waits, and ends the thread.
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
  std::condition_variable changed_;
  std::list<Waiting> waiting_;
  bool closed_ = false;
  std::thread thread_;
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_RETRY_THREAD_H_
