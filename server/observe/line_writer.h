// Writes lines to a descriptor without ever waiting for its reader.
#ifndef WARPLINE_SERVER_OBSERVE_LINE_WRITER_H_
#define WARPLINE_SERVER_OBSERVE_LINE_WRITER_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "server/base/mutex.h"

namespace warpline {

// A line is dropped and counted if a full pipe, a full disk or a stopped terminal does not accept it at once.
// Before the next line that can be written, another line reports how many were lost. Thread-safe: one thread
// writes at a time. Other threads leave their lines to it and continue.
class LineWriter {
 public:
  // The descriptor must stay open as long as this lives.
  explicit LineWriter(int fd) : fd_(fd) {}
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

  // Writes a line of at most LogLine::kMaxBytes, because a pipe might accept only a part of a longer one.
  // Returns when the line is written or dropped, unless another thread is writing.
  void Write(std::string line);
  std::int64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  bool WriteNow(const std::string& line) const;
  void WriteOrDrop(const std::string& line);

  const int fd_;
  std::atomic<std::int64_t> dropped_ = 0;
  std::int64_t told_ = 0;  // how many of dropped_ have been reported; used by the writing thread
  Mutex mutex_;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::string> waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_OBSERVE_LINE_WRITER_H_
