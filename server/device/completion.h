// Waits for the events of one device and calls back when each of them has happened.
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

// One thread queries all events in turn. Host functions in the streams would be slower and would not be
// called after an error, and several threads would contend for the lock of the driver. The thread spins while
// something is in flight and for a little longer, because waking a sleeping thread costs as much as a small
// request. While a long job runs it sleeps for short times between its queries.
//
// Once the context is lost, every callback gets an error, including those of events that are watched later.
class Completion {
 public:
  // Called with the outcome of all work of the stream up to the event, on any of the threads of this object.
  using Callback = absl::AnyInvocable<void(absl::Status)>;
  // Called once, with the first error after which the context cannot be used.
  using ContextLost = absl::AnyInvocable<void(const absl::Status&)>;

  Completion(int device, ContextLost context_lost);
  // Waits for the device. When it returns, every callback has been called, including those of events that
  // callbacks passed to Watch meanwhile. Once the destructor has started, only callbacks may call Watch.
  ~Completion();

  // Thread-safe. The event must have been recorded, and must not be recorded again before the callback.
  void Watch(cudaEvent_t event, Callback callback);

  // Reports an error that another thread met, so that the loss of a context is noticed at once.
  void ReportError(const absl::Status& status);

 private:
  struct Watched {
    cudaEvent_t event;
    Callback callback;
    absl::Status status;
  };
  void Loop();
  void TakeArrivals(bool may_sleep);
  // Looks for one event that has happened, and calls its callback or hands it to a worker. Returns false if
  // there is none.
  bool Poll();
  // The loop of the workers, which run the callbacks that Poll hands over. Answering a request and launching
  // the next one takes longer than a small job on the device. A single thread for polling and callbacks would
  // therefore limit the rate of small requests.
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
  bool stopping_seen_ = false;        // like in_flight_, used only by the polling thread
  std::vector<Watched> in_flight_;
  // From the standard library, because its notify_one wakes one worker for each item.
  std::mutex work_mutex_;
  std::condition_variable work_changed_;
  std::deque<Watched> work_;  // under work_mutex_
  bool work_ended_ = false;   // under work_mutex_
  std::vector<std::thread> workers_;
  std::thread thread_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_DEVICE_COMPLETION_H_
