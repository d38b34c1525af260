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
  // Of those in progress, streams: they last for as long as they like, and say nothing of the load.
  void AddStream() { streams_.fetch_add(1, std::memory_order_relaxed); }
  void RemoveStream() { streams_.fetch_sub(1, std::memory_order_relaxed); }
  // Of those in progress, unary calls whose jobs take a device for long: nor do they, until they are
  // answered.
  void AddAwaiting() { awaiting_.fetch_add(1, std::memory_order_relaxed); }
  void RemoveAwaiting() { awaiting_.fetch_sub(1, std::memory_order_relaxed); }
  int all_in_progress() const { return in_progress_.load(std::memory_order_seq_cst); }
  // Unary calls that keep, or will soon keep, a thread busy. Approximately: it may even be negative for a
  // moment.
  int in_progress() const {
    return in_progress_.load(std::memory_order_relaxed) - streams_.load(std::memory_order_relaxed) -
           awaiting_.load(std::memory_order_relaxed);
  }
  void RemoveInProgress() { in_progress_.fetch_sub(1, std::memory_order_release); }

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
  std::atomic<int> streams_ = 0;
  std::atomic<int> awaiting_ = 0;
  std::atomic<bool> draining_ = false;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_CALL_COUNTS_H_
