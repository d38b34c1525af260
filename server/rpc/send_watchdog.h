// Cancels calls whose clients do not read the response.
#ifndef WARPLINE_SERVER_RPC_SEND_WATCHDOG_H_
#define WARPLINE_SERVER_RPC_SEND_WATCHDOG_H_

#include <list>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "server/engine/mutex.h"
#include "server/rpc/unary_call.h"

namespace warpline {

// A response that gRPC has not taken off our hands (its bytes wait for the reader's flow control, and with
// them their staging slot) for longer than the timeout is given up. Thread-safe.
class SendWatchdog {
 public:
  explicit SendWatchdog(absl::Duration timeout);
  ~SendWatchdog();

  void Add(UnaryCall& call);
  void Remove(UnaryCall& call);
  // Waits until no response is being sent; false if that did not happen by the deadline.
  bool AwaitIdle(absl::Time deadline);

 private:
  void Loop();
  void CancelOverdue();

  const absl::Duration timeout_;
  Mutex mutex_;
  std::list<UnaryCall*> sending_ ABSL_GUARDED_BY(mutex_);  // oldest first
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_SEND_WATCHDOG_H_
