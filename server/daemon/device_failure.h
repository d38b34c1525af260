// Handles the loss of a GPU for this process.
#ifndef WARPLINE_SERVER_DAEMON_DEVICE_FAILURE_H_
#define WARPLINE_SERVER_DAEMON_DEVICE_FAILURE_H_

#include <atomic>
#include <string>

namespace warpline {

// The context of a device is lost, or the device hangs: only a new process helps. Thread-safe.
class DeviceFailure {
 public:
  // Makes the process stop, as SIGTERM does.
  void Report(const std::string& what, const std::string& reason);
  bool happened() const { return happened_; }
  // Called when nobody waits for signals any more: from then on a failure ends the process at once.
  void SetStopped() { stopped_ = true; }

 private:
  std::atomic<bool> happened_ = false, stopped_ = false;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_DAEMON_DEVICE_FAILURE_H_
