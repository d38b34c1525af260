// What the devices of this process try while they are tuned.
//
// A kernel that is tried may make its context useless. Nothing but a new process helps then,
// and the new process would be asked for the same problem and try the same candidate again. So whoever
// notices that a device has failed blames what it tries at that moment, before the process ends. A process
// that is killed for another reason blames nobody.
#ifndef WARPLINE_SERVER_DEVICE_ATTEMPTS_H_
#define WARPLINE_SERVER_DEVICE_ATTEMPTS_H_

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "server/base/mutex.h"

namespace warpline {

// Thread-safe.
class Attempts {
 public:
  // Writes down that the variant must not be tried for the problem again. The next process must find that
  // once this has returned.
  using Condemn = std::function<void(const std::string& problem, const std::string& variant)>;

  // Lasts as long as the variant uses the device. A device has one at a time.
  class Attempt {
   public:
    Attempt(Attempts& attempts, int device, const std::string& problem, std::string_view variant);
    ~Attempt();
    Attempt(const Attempt&) = delete;
    Attempt& operator=(const Attempt&) = delete;

   private:
    Attempts& attempts_;
    const int device_;
  };

  // Before the first attempt on the device. What `condemn` uses outlives the attempts on the device.
  void SetCondemn(int device, Condemn condemn);
  // The device has failed. Condemns what it tries now, if it tries anything, and returns when that has been
  // written down. Each attempt is condemned once.
  void Blame(int device, std::string_view reason);

 private:
  struct Device {
    Condemn condemn;
    std::string problem, variant;  // empty: nothing is tried, or it has been condemned already
  };

  Mutex mutex_;
  std::map<int, Device> devices_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_DEVICE_ATTEMPTS_H_
