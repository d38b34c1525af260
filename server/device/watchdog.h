// Notices that a job on a device never ends.
//
// A kernel that never ends, or a driver that hangs, gives no error: jobs stay on their lanes, the queue
// fills, and health still says SERVING. Nothing but a new process helps then, so the watchdog only tells;
// main.cc ends the process and its supervisor starts another one.
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

// A job has stalled when it has run for longer than its limit: the base, and ten times the sum of the
// estimates of the jobs that ran on the device together with it, itself included, at the moment at which the
// sum was largest. So a job that hangs is found although others come and go beside it. Time in which the
// whole process stood still (SIGSTOP, a suspended machine) does not count.
//
// Thread-safe. Started and Ended take well under a microsecond and allocate nothing once warm.
class DeviceWatchdog {
 public:
  using Clock = std::chrono::steady_clock;

  struct Stall {
    int device = 0;
    int jobs = 0;            // that run on it
    absl::Duration running;  // for so long the job has run
    absl::Duration limit;
  };

  struct Options {
    // How long a device may take for a job of no cost. Zero disables the watchdog: nothing is ever a stall.
    absl::Duration base = absl::Seconds(10);
    // How often its thread looks. Zero: it has no thread, and whoever owns it calls Poll.
    absl::Duration period = absl::Seconds(1);
    // Monotonic; tests have one of their own.
    std::function<Clock::time_point()> now = [] { return Clock::now(); };
  };

  // Calls `on_stall` at most once, for the first job that stalls, from its own thread or from Poll and
  // without a lock. Devices have the numbers 0 to devices - 1.
  DeviceWatchdog(int devices, Options options, std::function<void(const Stall&)> on_stall);
  // Waits for a call of `on_stall` that is under way.
  ~DeviceWatchdog();
  DeviceWatchdog(const DeviceWatchdog&) = delete;
  DeviceWatchdog& operator=(const DeviceWatchdog&) = delete;

  // A job that runs. Plain data; give each back once.
  struct Token {
    int device = -1;
    int slot = -1;
  };
  // A job starts on the device, which is expected to take it `estimate_seconds` (Backend::Compile).
  Token Started(int device, double estimate_seconds);
  // It has ended, whether well or not.
  void Ended(Token token);

  // Looks at all devices once.
  void Poll();

 private:
  struct Job {
    bool runs = false;
    Clock::time_point started;
    double estimate = 0;              // seconds
    double most_running_seconds = 0;  // estimates of all that ran on the device at any moment of its run
  };
  struct Device {
    Mutex mutex;
    std::vector<Job> jobs ABSL_GUARDED_BY(mutex);  // by slot
    std::vector<int> free ABSL_GUARDED_BY(mutex);  // slots
    int running ABSL_GUARDED_BY(mutex) = 0;
    double running_seconds ABSL_GUARDED_BY(mutex) = 0;  // estimates of these
  };

  // The job of device `index` that is furthest beyond its limit at `now`; running <= limit where all is well.
  // `stood_still` is added to the starts of its jobs.
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
