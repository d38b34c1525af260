// The threads that poll.
#ifndef WARPLINE_SERVER_RPC_POLLING_THREAD_H_
#define WARPLINE_SERVER_RPC_POLLING_THREAD_H_

#include <grpcpp/grpcpp.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "server/base/mutex.h"
#include "server/rpc/uploads.h"

namespace warpline {

// Polls one queue, whose tags are CompletionTags, until the queue has been shut down and is empty. Tags that
// take turns proceed one at a time, on this thread or on one that helps it.
class PollingThread {
 public:
  enum class Kind {
    // Always polls, and sleeps in gRPC until the next event of any connection comes.
    kSteady,
    // Polls only while its queue has calls, and never sleeps in gRPC: of all threads that do, gRPC wakes any
    // one for an event, whose call may then be another's, and waking that one too would cost a lone request
    // twice.
    kOnDemand,
  };
  // After each event the thread looks for the next one without sleeping for `look`, since a wake-up costs
  // some microseconds; after that it sleeps, so that an idle server uses no CPU. Zero never looks.
  PollingThread(std::unique_ptr<grpc::ServerCompletionQueue> queue, absl::Duration look, Kind kind);
  // Shuts the queue down and waits for the end of the thread.
  ~PollingThread();
  grpc::ServerCompletionQueue& queue() { return *queue_; }
  // A call of the queue, from before its first event to after its last one. Only those who are on demand need
  // to know.
  void AddCall() { calls_.fetch_add(1, std::memory_order_relaxed); }
  void RemoveCall() { calls_.fetch_sub(1, std::memory_order_relaxed); }
  // Has the thread, which must be on demand, run the task soon, as if it were a tag.
  void Post(absl::AnyInvocable<void()> task);
  // Has the thread run the task soon, as if it were a tag, and returns true; or returns false and does
  // nothing if the thread sleeps. What is done to a connection by the thread that reads it needs no hand-over
  // inside gRPC.
  bool TryPost(absl::AnyInvocable<void()> task);
  // Has the calling thread wait for one event of the queue, for so long at most, and see to it. The queue
  // must not be shut down meanwhile.
  void Help(absl::Duration time);
  // The calls of the queue whose messages have not arrived yet.
  Uploads& uploads() { return uploads_; }
  // Calls `function` on the calling thread while no tag of the queue proceeds, but for those that take no
  // turns.
  void BetweenTags(absl::FunctionRef<void()> function);
  // Returns whether the calling thread is the own thread of some queue.
  static bool OnPollingThread() { return on_polling_thread_; }
  PollingThread(const PollingThread&) = delete;
  PollingThread& operator=(const PollingThread&) = delete;

 private:
  friend class Relief;
  void Loop();
  void LoopOnDemand();
  void Proceed(void* tag, bool ok);
  void RunPosted();
  // False if something was posted first: then the thread must not sleep.
  bool GoToSleep();
  // Sleeps until something is posted, or, if the queue has calls, for a part of the time for which nothing
  // has come from it. Returns whether something was posted.
  bool Nap(std::chrono::nanoseconds quiet);
  void WakeUp();
  // Returns whether the thread has run since the last call of this function without coming to an event.
  bool IsHeldUp();
  // Does its work until it is back.
  void StandIn();

  static inline thread_local bool on_polling_thread_ = false;

  const std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  const std::chrono::nanoseconds look_;
  std::atomic<int> calls_ = 0;
  std::mutex one_at_a_time_;
  Uploads uploads_;                        // under one_at_a_time_
  std::atomic<std::uint64_t> rounds_ = 0;  // of the loop
  Mutex posted_mutex_;
  bool awake_ ABSL_GUARDED_BY(posted_mutex_) = true;
  bool stopping_ ABSL_GUARDED_BY(posted_mutex_) = false;
  std::vector<absl::AnyInvocable<void()>> posted_ ABSL_GUARDED_BY(posted_mutex_);
  std::atomic<bool> has_posted_ = false;  // lets the thread look without the lock
  // Only the relief uses `seen_rounds_` and `seen_cpu_ns_`.
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
