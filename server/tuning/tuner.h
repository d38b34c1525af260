// Finds the fastest variant of each problem that a device is asked for, while it has nothing else to do.
#ifndef WARPLINE_SERVER_TUNING_TUNER_H_
#define WARPLINE_SERVER_TUNING_TUNER_H_

#include <atomic>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "kernels/problem.h"
#include "server/base/mutex.h"
#include "server/observe/metrics.h"
#include "server/tuning/choices.h"
#include "server/tuning/tuning_file.h"
#include "server/tuning/workbench.h"

namespace warpline {

// Each problem is settled once and for all: results of a request differ in their last bits before and after,
// and at no other time. One thread; whoever offers problems waits for nothing.
class Tuner {
 public:
  // Problems that are offered and that it takes; others are not tuned. Clients decide what they send.
  static constexpr std::size_t kMaxProblems = 4096;

  // Called with what has been found, by the thread of this object.
  using Settled = std::function<void(const std::string& problem, const TunedChoice& choice)>;

  // `choices` and what `settled` uses outlive it.
  Tuner(std::unique_ptr<Workbench> workbench, TunedChoices& choices, Settled settled, TuningSeries series);
  // Gives up the problem on which it is at work.
  ~Tuner();
  Tuner(const Tuner&) = delete;
  Tuner& operator=(const Tuner&) = delete;

  // Thread-safe, as all of these.
  void Offer(const Problem& problem);
  // It needs no tuning: a file has its choice.
  void Know(const std::string& problem);
  const TuningSeries& series() const { return series_; }
  // Problems that have not been settled.
  std::size_t waiting() const;
  // Returns once none are, or at the deadline; false then.
  bool AwaitIdle(MonotonicTime deadline) const;

 private:
  struct Task {
    Problem problem;
    std::string text;
  };
  // The result of one turn with a task.
  enum class Outcome { kSettled, kAgain };
  void Loop();
  Outcome Settle(const Task& task);
  Outcome Compete(const Task& task, Trial& trial);
  Outcome GiveUp(const Task& task, std::string_view reason);
  bool AwaitQuiet(MonotonicTime deadline);

  const std::unique_ptr<Workbench> workbench_;
  TunedChoices& choices_;
  const Settled settled_;
  TuningSeries series_;
  std::atomic<bool> stopping_ = false;
  mutable Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;  // the same as stopping_, for the condition
  std::deque<Task> queue_ ABSL_GUARDED_BY(mutex_);
  std::size_t waiting_ ABSL_GUARDED_BY(mutex_) = 0;  // in the queue, or at work
  std::size_t taken_ ABSL_GUARDED_BY(mutex_) = 0;    // in all
  absl::flat_hash_set<std::string> known_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_TUNING_TUNER_H_
