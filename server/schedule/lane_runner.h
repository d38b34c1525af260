// A lane with its own thread, for work that must not delay others: copying large payloads, and launches of a
// backend that computes on the calling thread. The thread is created with the first task.
#ifndef WARPLINE_SERVER_SCHEDULE_LANE_RUNNER_H_
#define WARPLINE_SERVER_SCHEDULE_LANE_RUNNER_H_

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "server/base/clock.h"
#include "server/base/mutex.h"
#include "server/device/backend.h"

namespace warpline {

// At most one task waits at a time: the scheduler hands out a lane only when it is free.
class LaneRunner {
 public:
  // After a task the thread polls for the next one for `spin` before it sleeps: under load the next task
  // comes sooner than a sleeping thread can wake up.
  LaneRunner(int device, std::unique_ptr<Lane> lane, absl::Duration spin)
      : device_(device), lane_(std::move(lane)), spin_(absl::ToChronoNanoseconds(spin)) {}
  ~LaneRunner() {
    {
      MutexLock lock(&mutex_);
      stopping_ = true;
    }
    if (thread_.joinable()) thread_.join();
  }
  LaneRunner(const LaneRunner&) = delete;
  LaneRunner& operator=(const LaneRunner&) = delete;

  int device() const { return device_; }
  Lane& lane() { return *lane_; }
  // Returns whether the calling thread is the thread of a lane.
  static bool OnLaneThread() { return on_lane_thread_; }

  // Runs the task on the lane's thread. Only the thread that has taken the lane calls this, so there are no
  // concurrent calls.
  void Post(absl::AnyInvocable<void()> task) {
    if (!thread_.joinable()) thread_ = std::thread([this] { Loop(); });
    {
      MutexLock lock(&mutex_);
      task_ = std::move(task);
    }
    posted_.fetch_add(1, std::memory_order_release);
  }

 private:
  void Loop() {
    on_lane_thread_ = true;
    int seen = 0;
    for (bool first = true;; first = false) {
      if (!first) Spin(seen);
      absl::AnyInvocable<void()> task;
      {
        MutexLock lock(&mutex_);
        mutex_.Await([this] { return HasNews(); });
        if (!task_) return;
        task = std::exchange(task_, nullptr);
      }
      ++seen;
      task();
    }
  }
  // Returns when more tasks have been posted than `seen`, or after spin_.
  void Spin(int seen) const {
    if (spin_ == std::chrono::nanoseconds::zero()) return;
    const MonotonicTime start = MonotonicClock::now();
    while (posted_.load(std::memory_order_acquire) == seen && MonotonicClock::now() - start < spin_) {
    }
  }
  bool HasNews() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return static_cast<bool>(task_) || stopping_; }

  static inline thread_local bool on_lane_thread_ = false;

  const int device_;
  std::unique_ptr<Lane> lane_;
  const std::chrono::nanoseconds spin_;
  std::atomic<int> posted_ = 0;  // tasks so far; lets the thread look without the lock
  Mutex mutex_;
  absl::AnyInvocable<void()> task_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_SCHEDULE_LANE_RUNNER_H_
