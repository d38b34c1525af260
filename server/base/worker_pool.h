// A fixed number of threads for work that would hold up whoever asks for it: copying and inflating payloads,
// compiling plans.
#ifndef WARPLINE_SERVER_BASE_WORKER_POOL_H_
#define WARPLINE_SERVER_BASE_WORKER_POOL_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"

namespace warpline {

// Tasks run in the order in which they were posted, each on one thread. The threads are made at construction,
// so that no request ever makes one. The queue has no bound of its own: whoever posts has been admitted, and
// admission is what bounds it. Thread-safe.
class WorkerPool {
 public:
  // After a task a thread looks for the next one for as long as `look` before it sleeps: under load the next
  // one comes sooner than a sleeping thread wakes up.
  explicit WorkerPool(int threads, absl::Duration look = absl::ZeroDuration());
  // Every task that was posted has run when this returns.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  void Post(absl::AnyInvocable<void()> task);
  // Returns whether the calling thread works for a WorkerPool. Such a thread may wait a little for what it
  // has started.
  static bool OnWorkerThread() { return on_worker_thread_; }
  int size() const { return static_cast<int>(threads_.size()); }

 private:
  using Task = absl::AnyInvocable<void()>;
  void Loop();
  // Returns an empty task if there is none, or if another thread was faster.
  Task TryTake();
  // Waits for a task. An empty one means the end.
  Task AwaitTask();
  Task TakeFirst();

  static inline thread_local bool on_worker_thread_ = false;

  const std::chrono::nanoseconds look_;
  // Tasks that no thread has claimed yet, and threads that look for one. Both let others do without the lock,
  // and without waking up a thread that sleeps while one is awake.
  std::atomic<int> unclaimed_ = 0;
  std::atomic<int> looking_ = 0;
  std::mutex mutex_;
  std::condition_variable posted_;
  std::deque<Task> tasks_;  // under mutex_, as are those that follow
  int sleeping_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_BASE_WORKER_POOL_H_
