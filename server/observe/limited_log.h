// Log lines that others can cause in any number.
#ifndef WARPLINE_SERVER_OBSERVE_LIMITED_LOG_H_
#define WARPLINE_SERVER_OBSERVE_LIMITED_LOG_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "server/base/mutex.h"

namespace warpline {

// Writes at most ten lines a second to the log. The first line after a gap has the number of missing lines,
// in lines_left_out. If no further line comes, the gap is not reported. Thread-safe.
class LimitedLog {
 public:
  // Takes the same arguments as Log.
  void Write(std::string_view level, std::string_view message,
             std::vector<std::pair<std::string_view, std::string>> fields) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Returns the number of lines that were left out before this one; negative if this one must be left out
  // too.
  int Take() ABSL_LOCKS_EXCLUDED(mutex_);

  Mutex mutex_;
  std::int64_t second_ ABSL_GUARDED_BY(mutex_) = 0;
  int lines_ ABSL_GUARDED_BY(mutex_) = 0;
  int left_out_ ABSL_GUARDED_BY(mutex_) = 0;  // since the last line
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_OBSERVE_LIMITED_LOG_H_
