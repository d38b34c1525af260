// How many calls there are, for the end of a server.
#ifndef WARPLINE_SERVER_RPC_CALL_COUNTS_H_
#define WARPLINE_SERVER_RPC_CALL_COUNTS_H_

#include <atomic>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace warpline {

// Thread-safe. Every request counts and only the end of a server waits, so there is no lock.
class CallCounts {
 public:
  // A call object counts from its construction to its destruction, whether it has a call or waits for one.
  void AddObject() { objects_.fetch_add(1, std::memory_order_relaxed); }
  void RemoveObject() { objects_.fetch_sub(1, std::memory_order_release); }

  // A call is in progress from its headers on until gRPC has let go of it. Returns false, and counts
  // nothing, once the server drains: such a call is late.
  bool AddInProgress() {
    // The order of the two, and that of their counterparts, sees to it that a call is either waited for or
    // late.
    in_progress_.fetch_add(1, std::memory_order_seq_cst);
    if (!draining_.load(std::memory_order_seq_cst)) return true;
    RemoveInProgress();
    return false;
  }
  int in_progress() const { return in_progress_.load(std::memory_order_seq_cst); }
  void RemoveInProgress() { in_progress_.fetch_sub(1, std::memory_order_release); }

  // A call is busy while it keeps, or will soon keep, one of our threads busy: a unary call whose message has
  // come, until it is answered, but for the time in which its job takes a device for long.
  void AddBusy() { busy_.fetch_add(1, std::memory_order_relaxed); }
  void RemoveBusy() { busy_.fetch_sub(1, std::memory_order_relaxed); }
  int busy() const { return busy_.load(std::memory_order_relaxed); }

  // From now on calls are late.
  void Drain() { draining_.store(true, std::memory_order_seq_cst); }

  // Each waits until there are none and returns true, or returns false at the deadline.
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
