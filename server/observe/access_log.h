// One line for each call that has ended.
#ifndef WARPLINE_SERVER_OBSERVE_ACCESS_LOG_H_
#define WARPLINE_SERVER_OBSERVE_ACCESS_LOG_H_

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
  std::string code;    // of gRPC
  std::string reason;  // the error's message
  std::string owner;   // as Identities names it
  std::string client;  // the address
  std::string request_id, trace_parent;
  double seconds = 0;  // from the headers to the last byte of the answer
  std::size_t request_bytes = 0, response_bytes = 0;
};

// Lines are in logfmt and are written by a thread of its own, a moment later. Where they cannot be written,
// or not as fast as calls end, they are dropped and counted: calls never wait for a disk or a pipe.
// Thread-safe.
class AccessLog {
 public:
  // Appends to the file, which others may truncate; "-" stands for stderr. A named pipe may have no reader
  // yet, and lose the one that it has: lines are dropped until there is one. INVALID_ARGUMENT with the path
  // and the reason if the file cannot be opened. The metrics outlive it.
  static absl::StatusOr<std::unique_ptr<AccessLog>> Open(const std::string& path, Metrics& metrics);
  // Writes what is left, for a second at most.
  ~AccessLog();
  AccessLog(const AccessLog&) = delete;
  AccessLog& operator=(const AccessLog&) = delete;

  void Add(AccessRecord record);

 private:
  AccessLog(std::string path, UniqueFd file, Metrics& metrics);
  // Opens a pipe that has got a reader.
  void Reopen();
  void Loop();
  void Write(const std::vector<AccessRecord>& records, MonotonicTime deadline);

  const std::string path_;  // empty: stderr
  // Only the thread uses `file_`, `next_try_` and `failing_`.
  UniqueFd file_;
  MonotonicTime next_try_;
  const Counter written_, dropped_;
  bool failing_ = false;
  Mutex mutex_;
  std::vector<AccessRecord> waiting_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_OBSERVE_ACCESS_LOG_H_
