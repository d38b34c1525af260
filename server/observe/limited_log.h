// Log lines that somebody else brings about, as many as he likes.
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

// Ten lines a second go into the log. The first one after others were left out says how many these were, in
// lines_left_out; if none comes, nobody does. Thread-safe.
class LimitedLog {
 public:
  // Takes the same arguments as Log.
  void Write(std::string_view level, std::string_view message,
             std::vector<std::pair<std::string_view, std::string>> fields) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // The number of lines that were left out before this one; negative if this one is to be.
  int Take() ABSL_LOCKS_EXCLUDED(mutex_);

  Mutex mutex_;
  std::int64_t second_ ABSL_GUARDED_BY(mutex_) = 0;
  int lines_ ABSL_GUARDED_BY(mutex_) = 0;
  int left_out_ ABSL_GUARDED_BY(mutex_) = 0;  // since the last line
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_OBSERVE_LIMITED_LOG_H_
