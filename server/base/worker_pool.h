// A fixed number of threads for work that would delay the thread that needs it: copying and inflating
// payloads, compiling plans.
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

// Tasks run in the order in which they were posted, each on one thread. All threads are created at
// construction, so no request creates one. The queue itself has no limit: only admitted work is posted, and
// admission limits that. Thread-safe.
class WorkerPool {
 public:
  // After a task a thread looks for the next one for `look` before it sleeps: under load the next task comes
  // sooner than a sleeping thread can wake up.
  explicit WorkerPool(int threads, absl::Duration look = absl::ZeroDuration());
  // When this returns, every posted task has run.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  void Post(absl::AnyInvocable<void()> task);
  // Returns whether the calling thread belongs to a WorkerPool. Such a thread may wait briefly for work that
  // it has started.
  static bool OnWorkerThread() { return on_worker_thread_; }
  int size() const { return static_cast<int>(threads_.size()); }

 private:
  using Task = absl::AnyInvocable<void()>;
  void Loop();
  // Returns an empty task if there is none, or if another thread was faster.
  Task TryTake();
  // Waits for a task. An empty task means that the pool ends.
  Task AwaitTask();
  Task TakeFirst();

  static inline thread_local bool on_worker_thread_ = false;

  const std::chrono::nanoseconds look_;
  // The number of tasks that no thread has claimed yet, and of threads that look for one. They let other
  // threads work without the lock, and without waking a sleeping thread while another one is awake.
  std::atomic<int> unclaimed_ = 0;
  std::atomic<int> looking_ = 0;
  std::mutex mutex_;
  std::condition_variable posted_;
  std::deque<Task> tasks_;  // this and the next two are guarded by mutex_
  int sleeping_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_BASE_WORKER_POOL_H_
