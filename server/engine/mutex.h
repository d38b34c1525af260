// A mutex that waits for conditions as absl::Mutex does, on the standard library's.
//
// Why not absl::Mutex: the distribution's Abseil is not instrumented, so ThreadSanitizer does not see that
// its mutexes order anything and reports every guarded field; it knows the standard library's by heart.
#ifndef WARPLINE_SERVER_ENGINE_MUTEX_H_
#define WARPLINE_SERVER_ENGINE_MUTEX_H_

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"

namespace warpline {

class ABSL_LOCKABLE Mutex {
 public:
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  // Lets those that wait look at their conditions again.
  void Unlock() ABSL_UNLOCK_FUNCTION() {
    const bool wake = waiters_ > 0;
    mutex_.unlock();
    if (wake) changed_.notify_all();
  }

  // Unlocks, waits until condition() holds, and returns locked. The condition is evaluated under the lock.
  template <typename Condition>
  void Await(const Condition& condition) ABSL_EXCLUSIVE_LOCKS_REQUIRED(this) {
    AwaitUntil(condition, absl::InfiniteFuture());
  }
  // The same, up to a deadline; returns what condition() gave last.
  template <typename Condition>
  bool AwaitUntil(const Condition& condition, absl::Time deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(this) {
    std::unique_lock<std::mutex> lock(mutex_, std::adopt_lock);
    ++waiters_;
    bool holds = condition();
    while (!holds) {
      if (deadline == absl::InfiniteFuture()) {
        changed_.wait(lock);
      } else if (changed_.wait_until(lock, absl::ToChronoTime(deadline)) == std::cv_status::timeout) {
        holds = condition();
        break;
      }
      holds = condition();
    }
    --waiters_;
    lock.release();
    return holds;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int waiters_ = 0;  // under the lock
};

class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex* mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) { mutex->Lock(); }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_->Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex* const mutex_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_ENGINE_MUTEX_H_
