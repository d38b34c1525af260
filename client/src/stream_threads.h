// Threads for calls of large arrays that nobody waits for.
#ifndef WARPLINE_CLIENT_SRC_STREAM_THREADS_H_
#define WARPLINE_CLIENT_SRC_STREAM_THREADS_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/status/status.h"

namespace warpline::client {

// A few threads, which start as they are needed. Thread-safe.
class StreamThreads {
 public:
  // It is called once: with OK on one of the threads, or with why there is no thread for it.
  using Work = std::function<void(const absl::Status&)>;

  StreamThreads() = default;
  // Waits for what has begun. Nothing may wait any more.
  ~StreamThreads();
  StreamThreads(const StreamThreads&) = delete;
  StreamThreads& operator=(const StreamThreads&) = delete;

  // Returns a function that gives the work up, with a reason, if no thread has begun with it.
  std::function<void(const absl::Status&)> Run(Work work);

 private:
  struct Entry {
    Work work;
    bool taken = false;
  };

  // The work of an entry, if nobody has taken it.
  Work Take(Entry& entry);
  void RunAll();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Entry>> waiting_;
  std::size_t idle_ = 0;
  bool closed_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_STREAM_THREADS_H_
