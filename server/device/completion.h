// Waits for the events of one device and says so.
#ifndef WARPLINE_SERVER_DEVICE_COMPLETION_H_
#define WARPLINE_SERVER_DEVICE_COMPLETION_H_

#include <cuda_runtime_api.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "server/base/mutex.h"

namespace warpline {

// One thread that queries events in turn: no host functions in streams (slower, and silent on errors), and
// one driver lock taken by one thread. It spins while something is in flight and a little longer, because
// the wake-up of a sleeping thread costs as much as a small request; long jobs are polled with short sleeps.
//
// A lost context fails everything that is in flight, now and later.
class Completion {
 public:
  // Called on a thread of this object, not always the same, with the outcome of the stream up to the event.
  using Callback = absl::AnyInvocable<void(absl::Status)>;
  // Called once, with the first error after which the context cannot be used.
  using ContextLost = absl::AnyInvocable<void(const absl::Status&)>;

  Completion(int device, ContextLost context_lost);
  // Every callback has been called when this returns, those of events that callbacks watched included; waits
  // for the device. Nobody but callbacks calls Watch any more.
  ~Completion();

  // Thread-safe. The event has been recorded, and is not recorded again before the callback.
  void Watch(cudaEvent_t event, Callback callback);

  // Reports an error that another thread met, so that the loss of a context is heard of at once.
  void ReportError(const absl::Status& status);

 private:
  struct Watched {
    cudaEvent_t event;
    Callback callback;
    absl::Status status;
  };
  void Loop();
  void TakeArrivals(bool may_sleep);
  // Calls back one that is done; false if there was none.
  bool Poll();
  // Calls back what Poll hands over: answering a request and launching the next one takes longer than the
  // device needs for a small job, so one thread for both would be the limit of small requests.
  void Work();
  void CallBack(Watched watched);
  bool HasArrivals() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return !arrivals_.empty() || stopping_; }

  const int device_;
  Mutex mutex_;
  std::vector<Watched> arrivals_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  ContextLost context_lost_ ABSL_GUARDED_BY(mutex_);
  std::atomic<int> outstanding_ = 0;  // callbacks that have not returned yet
  std::atomic<int> arrived_ = 0;      // lets the spinning thread look without the lock
  bool stopping_seen_ = false;        // of the thread alone, as is what follows
  std::vector<Watched> in_flight_;
  // The standard library's own: each item wakes one worker, where conditions would wake all four.
  std::mutex work_mutex_;
  std::condition_variable work_changed_;
  std::deque<Watched> work_;  // under work_mutex_
  bool work_ended_ = false;   // under work_mutex_
  std::vector<std::thread> workers_;
  std::thread thread_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_DEVICE_COMPLETION_H_
