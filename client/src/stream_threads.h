// Threads for asynchronous calls of large arrays.
#ifndef WARPLINE_CLIENT_SRC_STREAM_THREADS_H_
#define WARPLINE_CLIENT_SRC_STREAM_THREADS_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "client/src/condition_variable.h"

namespace warpline::client {

// A few threads, which are started on demand. Thread-safe.
class StreamThreads {
 public:
  // Called once: with OK on one of the threads, or with the reason why no thread runs it.
  using Work = std::function<void(const absl::Status&)>;

  StreamThreads() = default;
  // Waits for the work that has begun. No work may be waiting.
  ~StreamThreads();
  StreamThreads(const StreamThreads&) = delete;
  StreamThreads& operator=(const StreamThreads&) = delete;

  // Queues the work. The returned function gives it up, with a reason, if no thread has begun it.
  std::function<void(const absl::Status&)> Run(Work work);

 private:
  struct Entry {
    Work work;
    bool taken = false;
  };

  // Returns the work of an entry if no thread has taken it.
  Work Take(Entry& entry);
  void RunAll();

  std::mutex mutex_;
  ConditionVariable changed_;
  std::deque<std::shared_ptr<Entry>> waiting_;
  std::size_t idle_ = 0;
  bool closed_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_STREAM_THREADS_H_
