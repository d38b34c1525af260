// A mutex that can wait for conditions like absl::Mutex, built on the standard library's mutex.
//
// Why not absl::Mutex: the distribution's Abseil is not instrumented. So ThreadSanitizer does not see the
// order that its mutexes create, and reports every guarded field. It does understand the standard library's
// mutexes.
#ifndef WARPLINE_SERVER_BASE_MUTEX_H_
#define WARPLINE_SERVER_BASE_MUTEX_H_

#include <condition_variable>
#include <mutex>

#include "absl/base/thread_annotations.h"
#include "server/base/clock.h"

namespace warpline {

class ABSL_LOCKABLE Mutex {
 public:
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  // Wakes one waiter whose condition holds now and that has not been woken yet. A waiter that continues will
  // unlock too and wake the next one, so no waiter is forgotten. If any of several threads may take a piece
  // of work, it costs one wake-up, not one per thread.
  void Unlock() ABSL_UNLOCK_FUNCTION() {
    Waiter* const woken = ChooseWaiter();
    // This is done under the lock, because the waiter is on the stack of its thread and could otherwise be
    // gone already.
    if (woken != nullptr) woken->changed.notify_one();
    mutex_.unlock();
  }

  // Unlocks, waits until condition() holds, and returns with the lock held. Other threads evaluate the
  // condition when they unlock, so it may read only data that this mutex guards.
  template <typename Condition>
  void Await(const Condition& condition) ABSL_EXCLUSIVE_LOCKS_REQUIRED(this) {
    AwaitUntil(condition, kNever);
  }
  // The same with a deadline. Returns the last result of condition().
  template <typename Condition>
  bool AwaitUntil(const Condition& condition, MonotonicTime deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(this) {
    if (condition()) return true;
    std::unique_lock<std::mutex> lock(mutex_, std::adopt_lock);
    WaiterFor<Condition> waiter(condition);
    // Waiting below unlocks too, so wake the next waiter.
    if (Waiter* const woken = ChooseWaiter(); woken != nullptr) woken->changed.notify_one();
    waiter.next = waiters_;
    waiters_ = &waiter;
    bool holds = false;
    bool in_time = true;
    while (!holds && in_time) {
      waiter.woken = false;
      if (deadline == kNever) {
        waiter.changed.wait(lock);
      } else {
        in_time = waiter.changed.wait_until(lock, deadline) == std::cv_status::no_timeout;
      }
      holds = condition();
    }
    Waiter** link = &waiters_;
    while (*link != &waiter) link = &(*link)->next;
    *link = waiter.next;
    lock.release();
    return holds;
  }

 private:
  // Lies on the stack of the waiting thread.
  struct Waiter {
    virtual bool Holds() const = 0;
    Waiter* next = nullptr;
    bool woken = false;
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

  // Chooses the waiter that began to wait last, whose caches are the warmest, and marks it as woken. Returns
  // null if no condition holds.
  Waiter* ChooseWaiter() {
    for (Waiter* waiter = waiters_; waiter != nullptr; waiter = waiter->next) {
      if (waiter->woken || !waiter->Holds()) continue;
      waiter->woken = true;
      return waiter;
    }
    return nullptr;
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
