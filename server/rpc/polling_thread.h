// The threads that poll the completion queues.
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

// Polls one queue until the queue has been shut down and is empty. All its tags are CompletionTags. Tags that
// take turns proceed one at a time, on this thread or on a thread that helps it.
class PollingThread {
 public:
  enum class Kind {
    // Always polls, and sleeps in gRPC until the next event of any connection comes.
    kSteady,
    // Polls only while its queue has calls, and never sleeps in gRPC. For an event, gRPC wakes any one of the
    // threads that sleep in it. If the event's call belongs to another thread, that one must be woken too, so
    // a lone request would pay for two wake-ups.
    kOnDemand,
  };
  // After each event the thread looks for the next one for `look` without sleeping, because a wake-up costs
  // some microseconds. After that it sleeps, so that an idle server uses no CPU. Zero: it never looks.
  PollingThread(std::unique_ptr<grpc::ServerCompletionQueue> queue, absl::Duration look, Kind kind);
  // Shuts the queue down and waits for the end of the thread.
  ~PollingThread();
  grpc::ServerCompletionQueue& queue() { return *queue_; }
  // A call belongs to the queue, from before its first event until after its last one. Only threads on demand
  // need to know this.
  void AddCall() { calls_.fetch_add(1, std::memory_order_relaxed); }
  void RemoveCall() { calls_.fetch_sub(1, std::memory_order_relaxed); }
  // Lets the thread, which must be on demand, run the task soon, as if it were a tag.
  void Post(absl::AnyInvocable<void()> task);
  // Lets the thread run the task soon, as if it were a tag, and returns true. Returns false and does nothing
  // if the thread sleeps. Work on a connection needs no hand-over inside gRPC if the thread that reads the
  // connection does it.
  bool TryPost(absl::AnyInvocable<void()> task);
  // Lets the calling thread wait for one event of the queue, at most for `time`, and handle it. The queue
  // must not be shut down meanwhile.
  void Help(absl::Duration time);
  // The calls of the queue whose messages have not arrived yet.
  Uploads& uploads() { return uploads_; }
  // Calls `function` on the calling thread while no tag of the queue proceeds, except tags that do not take
  // turns.
  void BetweenTags(absl::FunctionRef<void()> function);
  // Returns whether the calling thread is the thread of a PollingThread.
  static bool OnPollingThread() { return on_polling_thread_; }
  PollingThread(const PollingThread&) = delete;
  PollingThread& operator=(const PollingThread&) = delete;

 private:
  friend class Relief;
  void Loop();
  void LoopOnDemand();
  void Proceed(void* tag, bool ok);
  void RunPosted();
  // Returns false if something was posted first: then the thread must not sleep.
  bool GoToSleep();
  // Sleeps until something is posted. If the queue has calls, it sleeps at most for a part of `quiet`, the
  // time since the last event. Returns whether something was posted.
  bool Nap(std::chrono::nanoseconds quiet);
  void WakeUp();
  // Returns whether the thread has been running since the last call of this function without getting an
  // event.
  bool IsHeldUp();
  // Does the thread's work until the thread is back.
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

// Replaces polling threads that are stuck. gRPC 1.51 reads a connection as long as there is something to
// read, and returns no event meanwhile. A client that opens streams faster than they are parsed would hold
// the thread for seconds, delay all other clients, and cause a call object for each stream without any being
// handled. This thread checks every hundredth of a second whether a polling thread is stuck, and then polls
// its queue.
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
