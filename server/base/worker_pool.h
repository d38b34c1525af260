// A fixed number of threads for work that would hold up whoever asks for it: copying and inflating payloads,
// compiling plans.
#ifndef WARPLINE_SERVER_BASE_WORKER_POOL_H_
#define WARPLINE_SERVER_BASE_WORKER_POOL_H_

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/functional/any_invocable.h"

namespace warpline {

// Tasks run in the order in which they were posted, each on one thread. The threads are made at construction,
// so that no request ever makes one. The queue has no bound of its own: whoever posts has been admitted, and
// admission is what bounds it. Thread-safe.
class WorkerPool {
 public:
  explicit WorkerPool(int threads);
  // Every task that was posted has run when this returns.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  void Post(absl::AnyInvocable<void()> task);
  int size() const { return static_cast<int>(threads_.size()); }

 private:
  void Loop();

  // The standard library's own types: with one condition and tasks that any thread may take, notify_one wakes
  // exactly as many threads as there are tasks.
  std::mutex mutex_;
  std::condition_variable posted_;
  std::deque<absl::AnyInvocable<void()>> tasks_;  // under mutex_
  bool stopping_ = false;                         // under mutex_
  std::vector<std::thread> threads_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_BASE_WORKER_POOL_H_
