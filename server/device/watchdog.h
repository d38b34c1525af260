// Notices that a job on a device never ends.
//
// A kernel that never ends, or a driver that hangs, gives no error: jobs stay on their lanes, the queue
// fills, and health still says SERVING. Only a new process helps then, so the watchdog only reports it:
// the daemon ends the process, and its supervisor starts another one.
#ifndef WARPLINE_SERVER_DEVICE_WATCHDOG_H_
#define WARPLINE_SERVER_DEVICE_WATCHDOG_H_

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "server/base/mutex.h"

namespace warpline {

// A job has stalled when it has run for longer than its limit. The limit is the base plus ten times a sum of
// estimates: those of all jobs on the device, this job included, at the moment of its run when the sum was
// largest. So a job that hangs is found even if others start and end beside it. Time in which the whole
// process stood still (SIGSTOP, a suspended machine) does not count.
//
// Thread-safe. Started and Ended take well under a microsecond and allocate nothing once warm.
class DeviceWatchdog {
 public:
  using Clock = std::chrono::steady_clock;

  struct Stall {
    int device = 0;
    int jobs = 0;            // jobs that run on the device
    absl::Duration running;  // how long the job has run
    absl::Duration limit;
  };

  struct Options {
    // The limit of a job without cost. Zero disables the watchdog: it never reports a stall.
    absl::Duration base = absl::Seconds(10);
    // How often its thread looks. Zero: there is no thread, and the owner of the watchdog calls Poll.
    absl::Duration period = absl::Seconds(1);
    // A monotonic clock; tests replace it.
    std::function<Clock::time_point()> now = [] { return Clock::now(); };
  };

  // Calls `on_stall` at most once, for the first job that stalls, from its own thread or from Poll, without
  // holding a lock. Devices have the numbers 0 to devices - 1.
  DeviceWatchdog(int devices, Options options, std::function<void(const Stall&)> on_stall);
  // Waits for a call of `on_stall` that is under way.
  ~DeviceWatchdog();
  DeviceWatchdog(const DeviceWatchdog&) = delete;
  DeviceWatchdog& operator=(const DeviceWatchdog&) = delete;

  // Identifies a running job. Plain data; pass each token to Ended once.
  struct Token {
    int device = -1;
    int slot = -1;
  };
  // A job starts on the device. `estimate_seconds` is its expected time there (Backend::Compile).
  Token Started(int device, double estimate_seconds);
  // The job has ended, successfully or not.
  void Ended(Token token);

  // Looks at all devices once.
  void Poll();

 private:
  struct Job {
    bool runs = false;
    Clock::time_point started;
    double estimate = 0;              // seconds
    double most_running_seconds = 0;  // largest sum of estimates on the device during its run
  };
  struct Device {
    Mutex mutex;
    std::vector<Job> jobs ABSL_GUARDED_BY(mutex);  // by slot
    std::vector<int> free ABSL_GUARDED_BY(mutex);  // slots
    int running ABSL_GUARDED_BY(mutex) = 0;
    double running_seconds ABSL_GUARDED_BY(mutex) = 0;  // sum of their estimates
  };

  // Returns the job of device `index` that is furthest beyond its limit at `now`; running <= limit if all is
  // well. Adds `stood_still` to the starts of the device's jobs.
  Stall Look(int index, Clock::time_point now, Clock::duration stood_still);
  void Loop();

  const Options options_;
  const std::function<void(const Stall&)> on_stall_;
  std::vector<Device> devices_;
  Mutex mutex_;
  Clock::time_point polled_ ABSL_GUARDED_BY(mutex_);
  bool told_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last, as it uses all others
};

// "a job has run on device 1 for 12.5s, beside 2 others; its limit is 10.5s"
std::string ToString(const DeviceWatchdog::Stall& stall);

}  // namespace warpline

#endif  // WARPLINE_SERVER_DEVICE_WATCHDOG_H_
