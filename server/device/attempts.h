// The variants that the devices of this process try while they are tuned.
//
// A kernel that is tried may make its context useless, or never end. Only a new process helps then. The new
// process would be asked for the same problem and try the same candidate again. So the thread that notices
// the failure of a device blames the variant that the device tries at that moment. It does so before the
// process ends. A process that is killed for another reason blames no variant.
#ifndef WARPLINE_SERVER_DEVICE_ATTEMPTS_H_
#define WARPLINE_SERVER_DEVICE_ATTEMPTS_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "server/base/mutex.h"
#include "server/device/watchdog.h"

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
    DeviceWatchdog* watchdog_ = nullptr;
    DeviceWatchdog::Token token_;
  };

  // Before the first attempt on the device. What `condemn` uses outlives the attempts on the device.
  void SetCondemn(int device, Condemn condemn);
  // Attempts that begin from now on count as jobs of the watchdog's devices, so that one which never ends is
  // a stall. The watchdog outlives them.
  void Watch(DeviceWatchdog& watchdog);
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
  DeviceWatchdog* watchdog_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

// Watches so many devices, and what is tried on them. On a stall it blames that, and then calls `fail`, which
// ends the process, with what has been seen. `attempts` and what `fail` uses outlive it.
std::unique_ptr<DeviceWatchdog> WatchDevices(int devices, absl::Duration timeout, Attempts& attempts,
                                             std::function<void(const std::string& stall)> fail);

}  // namespace warpline

#endif  // WARPLINE_SERVER_DEVICE_ATTEMPTS_H_
