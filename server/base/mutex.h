// A mutex that waits for conditions as absl::Mutex does, on the standard library's.
//
// Why not absl::Mutex: the distribution's Abseil is not instrumented, so ThreadSanitizer does not see that
// its mutexes order anything and reports every guarded field; it knows the standard library's by heart.
#ifndef WARPLINE_SERVER_BASE_MUTEX_H_
#define WARPLINE_SERVER_BASE_MUTEX_H_

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"

namespace warpline {

class ABSL_LOCKABLE Mutex {
 public:
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  // Wakes those whose condition holds now, and nobody else: a wake-up costs microseconds.
  void Unlock() ABSL_UNLOCK_FUNCTION() {
    Wake();
    mutex_.unlock();
  }

  // Unlocks, waits until condition() holds, and returns locked. Whoever unlocks evaluates the condition, so
  // it may read only what this mutex guards.
  template <typename Condition>
  void Await(const Condition& condition) ABSL_EXCLUSIVE_LOCKS_REQUIRED(this) {
    AwaitUntil(condition, absl::InfiniteFuture());
  }
  // The same, up to a deadline; returns what condition() gave last.
  template <typename Condition>
  bool AwaitUntil(const Condition& condition, absl::Time deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(this) {
    if (condition()) return true;
    std::unique_lock<std::mutex> lock(mutex_, std::adopt_lock);
    Wake();  // waiting unlocks too
    WaiterFor<Condition> waiter(condition);
    waiter.next = waiters_;
    waiters_ = &waiter;
    bool holds = false;
    if (deadline == absl::InfiniteFuture()) {
      waiter.changed.wait(lock, condition);
      holds = true;
    } else {
      holds = waiter.changed.wait_until(lock, absl::ToChronoTime(deadline), condition);
    }
    Waiter** link = &waiters_;
    while (*link != &waiter) link = &(*link)->next;
    *link = waiter.next;
    lock.release();
    return holds;
  }

 private:
  // On the stack of the thread that waits.
  struct Waiter {
    virtual bool Holds() const = 0;
    Waiter* next = nullptr;
    std::condition_variable changed;

   protected:
    ~Waiter() = default;
  };
  template <typename Condition>
  struct WaiterFor final : Waiter {
    explicit WaiterFor(const Condition& condition) : condition(condition) {}
    bool Holds() const override { return condition(); }
    const Condition& condition;
  };

  void Wake() {
    for (Waiter* waiter = waiters_; waiter != nullptr; waiter = waiter->next) {
      if (waiter->Holds()) waiter->changed.notify_one();
    }
  }

  std::mutex mutex_;
  Waiter* waiters_ = nullptr;  // under the lock
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

#endif  // WARPLINE_SERVER_BASE_MUTEX_H_
