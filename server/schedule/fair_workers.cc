#include "server/schedule/fair_workers.h"

#include <sys/resource.h>
#include <unistd.h>

#include <utility>

namespace warpline {
namespace {

// In Linux each thread has its own nice value. Lowering it again needs privileges, so such a thread does no
// other work.
void SetNice(int nice) {
  thread_local int now = 0;
  if (std::exchange(now, nice) != nice) setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), nice);
}

}  // namespace

void FairWorkers::Post(const Claimant& claimant, Task task) {
  {
    MutexLock lock(&mutex_);
    waiting_.Push(claimant, /*cost=*/1, next_id_++, std::move(task));
  }
  pool_.Post([this] { RunNext(); });
}

void FairWorkers::RunNext() {
  SetNice(nice_);
  Task task;
  {
    MutexLock lock(&mutex_);
    task = *waiting_.TakeFirst();  // not empty: each waiting task has one call of RunNext
  }
  task();
}

}  // namespace warpline
