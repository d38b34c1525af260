// The threads that poll.
#ifndef WARPLINE_SERVER_RPC_POLLING_THREAD_H_
#define WARPLINE_SERVER_RPC_POLLING_THREAD_H_

#include <grpcpp/grpcpp.h>
#include <time.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "server/base/mutex.h"

namespace warpline {

// Polls one queue, whose tags are CompletionTags, until the queue has been shut down and is empty. Tags
// proceed one at a time, on this thread or on the relief's.
class PollingThread {
 public:
  // After each event the thread looks for the next one without sleeping for `look`, since a wake-up costs
  // some microseconds; after that it sleeps, so that an idle server uses no CPU. Zero never looks. The queue
  // outlives this.
  PollingThread(grpc::CompletionQueue& queue, absl::Duration look);
  // Waits for the end of the thread.
  ~PollingThread();
  // Has the thread run the task soon, as if it were a tag, and returns true; or returns false and does
  // nothing if the thread sleeps. What is done to a connection by the thread that reads it needs no hand-over
  // inside gRPC.
  bool TryPost(absl::AnyInvocable<void()>& task);
  // Whether the calling thread is some queue's own.
  static bool OnPollingThread() { return on_polling_thread_; }
  PollingThread(const PollingThread&) = delete;
  PollingThread& operator=(const PollingThread&) = delete;

 private:
  friend class Relief;
  void Loop();
  void Proceed(void* tag, bool ok);
  void RunPosted();
  // False if something was posted first: then the thread must not sleep.
  bool GoToSleep();
  void WakeUp();
  // Whether it has run since this was last asked, without coming to an event.
  bool IsHeldUp();
  // Does its work until it is back.
  void StandIn();

  static inline thread_local bool on_polling_thread_ = false;

  grpc::CompletionQueue& queue_;
  const absl::Duration look_;
  std::mutex one_at_a_time_;
  std::atomic<std::uint64_t> rounds_ = 0;  // of the loop
  Mutex posted_mutex_;
  bool awake_ ABSL_GUARDED_BY(posted_mutex_) = true;
  std::vector<absl::AnyInvocable<void()>> posted_ ABSL_GUARDED_BY(posted_mutex_);
  std::atomic<bool> has_posted_ = false;  // lets the thread look without the lock
  // Of the relief.
  std::uint64_t seen_rounds_ = 0;
  std::int64_t seen_cpu_ns_ = 0;
  std::thread thread_;
  clockid_t cpu_clock_;
};

// Stands in for polling threads that are held up. gRPC 1.51 reads a connection for as long as there is
// something to be read, and meanwhile returns no event: a client that opens streams faster than they are
// parsed would hold the thread for seconds, keep everybody else waiting, and have a call object made for each
// stream without any being looked at. A thread of its own looks every hundredth of a second whether a polling
// thread is in such a state, and polls its queue then.
class Relief {
 public:
  // The threads outlive this.
  explicit Relief(std::vector<PollingThread*> threads);
  ~Relief();
  Relief(const Relief&) = delete;
  Relief& operator=(const Relief&) = delete;

 private:
  void Loop();

  const std::vector<PollingThread*> threads_;
  Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_POLLING_THREAD_H_
