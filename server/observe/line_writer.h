// Writes lines to a descriptor without ever waiting for whoever reads it.
#ifndef WARPLINE_SERVER_OBSERVE_LINE_WRITER_H_
#define WARPLINE_SERVER_OBSERVE_LINE_WRITER_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "server/base/mutex.h"

namespace warpline {

// A line that a full pipe, a full disk or a stopped terminal does not take at once is dropped and counted.
// The next line that can be written comes after one that tells how many were lost. Thread-safe: one thread
// writes at a time, what others have to say meanwhile waits for it, and they go on.
class LineWriter {
 public:
  // The descriptor stays open for as long as this lives.
  explicit LineWriter(int fd) : fd_(fd) {}
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

  // Writes a line, and cuts off what is beyond 4 KiB, since a pipe might take only a part of it. Returns when
  // the line is written or dropped, unless another thread is writing.
  void Write(std::string line);
  std::int64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  bool WriteNow(const std::string& line) const;
  void WriteOrDrop(const std::string& line);

  const int fd_;
  std::atomic<std::int64_t> dropped_ = 0;
  std::int64_t told_ = 0;  // of these, told of; of the thread that writes
  Mutex mutex_;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::string> waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_OBSERVE_LINE_WRITER_H_
