// Gives up stalled uploads.
#ifndef WARPLINE_SERVER_RPC_UPLOAD_WATCHDOG_H_
#define WARPLINE_SERVER_RPC_UPLOAD_WATCHDOG_H_

#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "server/base/mutex.h"
#include "server/observe/limited_log.h"
#include "server/rpc/polling_thread.h"
#include "server/rpc/uploads.h"

namespace warpline {

// Checks the uploads of all polling threads four times a second, on its own thread. Each upload must receive
// 64 KiB within the send timeout. Once the server drains, it must receive them within a fifteenth of that
// time, so that a stalled upload does not delay the end of the server. Thread-safe.
class UploadWatchdog {
 public:
  // The threads outlive this.
  UploadWatchdog(std::vector<PollingThread*> threads, absl::Duration send_timeout);
  ~UploadWatchdog();
  UploadWatchdog(const UploadWatchdog&) = delete;
  UploadWatchdog& operator=(const UploadWatchdog&) = delete;

  void Drain();

 private:
  void Loop();

  const std::vector<PollingThread*> threads_;
  const absl::Duration send_timeout_;
  Mutex mutex_;
  Uploads::Progress progress_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  LimitedLog log_;
  std::thread thread_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_UPLOAD_WATCHDOG_H_
