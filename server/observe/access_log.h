// The access log: one line for each call that has ended.
#ifndef WARPLINE_SERVER_OBSERVE_ACCESS_LOG_H_
#define WARPLINE_SERVER_OBSERVE_ACCESS_LOG_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/base/clock.h"
#include "server/base/mutex.h"
#include "server/base/unique_fd.h"
#include "server/observe/metrics.h"

namespace warpline {

// The contents of one line, about one call. Empty fields are left out.
struct AccessRecord {
  absl::Time ended;
  std::string method;  // "warpline.v1.KernelService/Gemm"
  std::string code;    // gRPC's code
  std::string reason;  // the error's message
  std::string owner;   // as Identities names it
  std::string client;  // the client's address
  std::string request_id, trace_parent;
  double seconds = 0;  // from the headers to the last byte of the answer
  std::size_t request_bytes = 0, response_bytes = 0;
};

// A separate thread writes the lines, in the form of the log (log.h), a moment later. Lines that cannot be
// written, or not as fast as calls end, are dropped and counted: calls never wait for a disk or a pipe.
// Thread-safe.
class AccessLog {
 public:
  // Appends to the file, which others may truncate; "-" means stderr. A named pipe need not have a reader
  // yet, and may lose its reader: lines are dropped while there is none. INVALID_ARGUMENT with the path and
  // the reason if the file cannot be opened. The metrics outlive the log.
  static absl::StatusOr<std::unique_ptr<AccessLog>> Open(const std::string& path, Metrics& metrics);
  // Writes the remaining lines, for at most a second.
  ~AccessLog();
  AccessLog(const AccessLog&) = delete;
  AccessLog& operator=(const AccessLog&) = delete;

  void Add(AccessRecord record);
  // Opens the file again by its name before the next line: another program may have renamed it.
  void OpenAnew() { open_anew_ = true; }

 private:
  AccessLog(std::string path, UniqueFd file, Metrics& metrics);
  // Keeps the open file if the name cannot be opened.
  void OpenByName();
  // Opens a pipe once it has a reader.
  void Reopen();
  void Loop();
  void Write(const std::vector<AccessRecord>& records, MonotonicTime deadline);

  const std::string path_;  // empty: stderr
  // Only the thread uses `file_`, `next_try_` and `failing_`.
  UniqueFd file_;
  MonotonicTime next_try_;
  std::atomic<bool> open_anew_ = false;
  const Counter written_, dropped_;
  bool failing_ = false;
  Mutex mutex_;
  std::vector<AccessRecord> waiting_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_OBSERVE_ACCESS_LOG_H_
