// Cancels calls whose clients do not read the response.
#ifndef WARPLINE_SERVER_RPC_SEND_WATCHDOG_H_
#define WARPLINE_SERVER_RPC_SEND_WATCHDOG_H_

#include <list>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "server/base/mutex.h"
#include "server/rpc/unary_call.h"

namespace warpline {

// A response that gRPC has not taken off our hands for longer than the timeout is given up: its bytes wait
// for the reader's flow control, and with them their staging slot. Thread-safe.
class SendWatchdog {
 public:
  explicit SendWatchdog(absl::Duration timeout);
  ~SendWatchdog();

  void Add(UnaryCall& call);
  void Remove(UnaryCall& call);

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
