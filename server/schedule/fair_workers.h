// Threads for work of which clients can cause any amount.
#ifndef WARPLINE_SERVER_SCHEDULE_FAIR_WORKERS_H_
#define WARPLINE_SERVER_SCHEDULE_FAIR_WORKERS_H_

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "server/base/mutex.h"
#include "server/base/owner.h"
#include "server/base/worker_pool.h"
#include "server/schedule/fair_queue.h"

namespace warpline {

// A pool whose tasks wait in a fair queue, so that a claimant with many tasks does not delay a claimant with
// few. All tasks have the same cost. Thread-safe.
class FairWorkers {
 public:
  using Task = absl::AnyInvocable<void()>;
  // `nice`: the nice value of the threads (setpriority(2)).
  explicit FairWorkers(int threads, int nice = 0) : nice_(nice), pool_(threads) {}

  void Post(const Claimant& claimant, Task task);

 private:
  void RunNext();

  const int nice_;
  Mutex mutex_;
  std::uint64_t next_id_ ABSL_GUARDED_BY(mutex_) = 0;
  FairQueue<Task> waiting_ ABSL_GUARDED_BY(mutex_);
  WorkerPool pool_;  // last, because its tasks use the other members
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_SCHEDULE_FAIR_WORKERS_H_
