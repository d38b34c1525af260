// A lane with a thread of its own, for work that must not hold up others: copying large payloads, and
// launches of a backend that computes on the calling thread.
#ifndef WARPLINE_SERVER_SCHEDULE_LANE_RUNNER_H_
#define WARPLINE_SERVER_SCHEDULE_LANE_RUNNER_H_

#include <memory>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "server/base/mutex.h"
#include "server/device/backend.h"

namespace warpline {

// At most one task waits at a time: the scheduler hands out a lane only when it is free.
class LaneRunner {
 public:
  LaneRunner(int device, std::unique_ptr<Lane> lane)
      : device_(device), lane_(std::move(lane)), thread_([this] { Loop(); }) {}
  ~LaneRunner() {
    {
      MutexLock lock(&mutex_);
      stopping_ = true;
    }
    thread_.join();
  }
  LaneRunner(const LaneRunner&) = delete;
  LaneRunner& operator=(const LaneRunner&) = delete;

  int device() const { return device_; }
  Lane& lane() { return *lane_; }

  // Runs the task on the lane's thread.
  void Post(absl::AnyInvocable<void()> task) {
    MutexLock lock(&mutex_);
    task_ = std::move(task);
  }

 private:
  void Loop() {
    for (;;) {
      absl::AnyInvocable<void()> task;
      {
        MutexLock lock(&mutex_);
        mutex_.Await([this] { return HasNews(); });
        if (!task_) return;
        task = std::exchange(task_, nullptr);
      }
      task();
    }
  }
  bool HasNews() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return static_cast<bool>(task_) || stopping_; }

  const int device_;
  std::unique_ptr<Lane> lane_;
  Mutex mutex_;
  absl::AnyInvocable<void()> task_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_SCHEDULE_LANE_RUNNER_H_
