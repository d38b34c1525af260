// Additional threads that read and write sockets while large transfers are in progress.
#ifndef WARPLINE_SERVER_RPC_POLLING_HELPERS_H_
#define WARPLINE_SERVER_RPC_POLLING_HELPERS_H_

#include <cstddef>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "server/base/mutex.h"
#include "server/rpc/polling_thread.h"

namespace warpline {

// One thread copies some 5 GB/s from and to sockets, and in gRPC 1.51 any thread that polls any queue of a
// server does that for all its connections. The helpers poll the queue of `helped`, so that the thread that
// has moved a message may continue with the next one at once. They poll only while there are several
// transfers, one thread less than transfers. A lone transfer uses the polling thread itself, and small
// requests would pay for each additional thread that gRPC may wake for them. Thread-safe. The figures are in
// docs/benchmarks/history.md#2026-11-22-resident-tensors.
class PollingHelpers {
 public:
  // `helped` outlives this, and is not shut down earlier.
  PollingHelpers(PollingThread& helped, int threads);
  // Waits for the threads.
  ~PollingHelpers();
  PollingHelpers(const PollingHelpers&) = delete;
  PollingHelpers& operator=(const PollingHelpers&) = delete;

  // Called at the first message of a transfer (Add) and at its end (Remove).
  void Add();
  void Remove();
  // Returns whether the calling thread is a helper.
  static bool OnHelper() { return on_helper_; }

 private:
  void Loop(std::size_t index);

  static inline thread_local bool on_helper_ = false;

  PollingThread& helped_;
  Mutex mutex_;
  std::size_t transfers_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_POLLING_HELPERS_H_
