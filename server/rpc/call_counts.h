// Counts the calls, so that the server can wait for them when it ends.
#ifndef WARPLINE_SERVER_RPC_CALL_COUNTS_H_
#define WARPLINE_SERVER_RPC_CALL_COUNTS_H_

#include <atomic>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace warpline {

// Thread-safe. Every request counts and only the end of a server waits, so there is no lock.
class CallCounts {
 public:
  // A call object counts from its construction to its destruction, whether it has a call or still waits for
  // one.
  void AddObject() { objects_.fetch_add(1, std::memory_order_relaxed); }
  void RemoveObject() { objects_.fetch_sub(1, std::memory_order_release); }

  // A call is in progress from its headers until gRPC has released it. Once the server drains, this returns
  // false and counts nothing: the call is late.
  bool AddInProgress() {
    // The order of these two operations, and of those in the functions that drain and wait, ensures that each
    // call is either late or waited for.
    in_progress_.fetch_add(1, std::memory_order_seq_cst);
    if (!draining_.load(std::memory_order_seq_cst)) return true;
    RemoveInProgress();
    return false;
  }
  int in_progress() const { return in_progress_.load(std::memory_order_seq_cst); }
  void RemoveInProgress() { in_progress_.fetch_sub(1, std::memory_order_release); }

  // A call is busy while it uses one of our threads, or soon will. For a unary call this is from the arrival
  // of its message until its answer, except while its job runs on a device for a long time.
  void AddBusy() { busy_.fetch_add(1, std::memory_order_relaxed); }
  void RemoveBusy() { busy_.fetch_sub(1, std::memory_order_relaxed); }
  int busy() const { return busy_.load(std::memory_order_relaxed); }

  // After this, new calls are late.
  void Drain() { draining_.store(true, std::memory_order_seq_cst); }

  // Each waits until the count is 0 and returns true, or returns false at the deadline.
  bool AwaitNoneInProgress(absl::Time deadline) { return AwaitZero(in_progress_, deadline); }
  bool AwaitNoObjects(absl::Time deadline) { return AwaitZero(objects_, deadline); }

 private:
  static bool AwaitZero(const std::atomic<int>& count, absl::Time deadline) {
    while (count.load(std::memory_order_seq_cst) != 0) {
      if (absl::Now() >= deadline) return false;
      absl::SleepFor(absl::Milliseconds(1));
    }
    return true;
  }

  std::atomic<int> objects_ = 0;
  std::atomic<int> in_progress_ = 0;
  std::atomic<int> busy_ = 0;
  std::atomic<bool> draining_ = false;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_CALL_COUNTS_H_
