// Notices that a device no longer gets on with its work.
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

// A device makes progress when a job ends on it, or starts while it is idle. It has stalled when jobs run on
// it and it has made no progress for longer than the base plus ten times the largest estimate among these
// jobs. Jobs of one device end in any order, and a long one may hold up all others; one that ends shows that
// the device is alive. Time in which the whole process stood still (SIGSTOP, a suspended machine) does not
// count.
//
// Thread-safe. Started and Ended take well under a microsecond and allocate nothing once warm.
class DeviceWatchdog {
 public:
  using Clock = std::chrono::steady_clock;

  struct Stall {
    int device = 0;
    int jobs = 0;                     // that run on it
    absl::Duration without_progress;  // for so long
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

  // Calls `on_stall` at most once, for the first device that stalls, from its own thread or from Poll and
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
  // A job starts on the device, which is expected to take it `estimate_seconds` (Backend::EstimateSeconds).
  Token Started(int device, double estimate_seconds);
  // It has ended, whether well or not.
  void Ended(Token token);

  // Looks at all devices once.
  void Poll();

 private:
  struct Device {
    Mutex mutex;
    std::vector<double> estimates ABSL_GUARDED_BY(mutex);  // by slot; less than 0: the slot is free
    std::vector<int> free ABSL_GUARDED_BY(mutex);          // slots
    int running ABSL_GUARDED_BY(mutex) = 0;
    Clock::time_point progress ABSL_GUARDED_BY(mutex);
  };

  // Of device `index`, at `now`; without_progress <= limit where all is well. `stood_still` is added to the
  // time of its last progress.
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

// "device 1 has made no progress for 12.5s with 3 jobs on it; the limit is 10.5s"
std::string ToString(const DeviceWatchdog::Stall& stall);

}  // namespace warpline

#endif  // WARPLINE_SERVER_DEVICE_WATCHDOG_H_
