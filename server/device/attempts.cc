#include "server/device/attempts.h"

#include <utility>

#include "server/observe/log.h"

namespace warpline {
namespace {

// The estimate that the watchdog gets for an attempt: several launches of at most 25 ms each, as estimated.
constexpr double kEstimateSeconds = 0.1;

}  // namespace

Attempts::Attempt::Attempt(Attempts& attempts, int device, const std::string& problem,
                           std::string_view variant)
    : attempts_(attempts), device_(device) {
  {
    MutexLock lock(&attempts_.mutex_);
    Device& tries = attempts_.devices_[device_];
    tries.problem = problem;
    tries.variant = std::string(variant);
    watchdog_ = attempts_.watchdog_;
  }
  if (watchdog_ != nullptr) token_ = watchdog_->Started(device_, kEstimateSeconds);
}

Attempts::Attempt::~Attempt() {
  if (watchdog_ != nullptr) watchdog_->Ended(token_);
  MutexLock lock(&attempts_.mutex_);
  attempts_.devices_[device_].variant.clear();
}

void Attempts::SetCondemn(int device, Condemn condemn) {
  MutexLock lock(&mutex_);
  devices_[device].condemn = std::move(condemn);
}

void Attempts::Watch(DeviceWatchdog& watchdog) {
  MutexLock lock(&mutex_);
  watchdog_ = &watchdog;
}

void Attempts::Blame(int device, std::string_view reason) {
  // The lock is kept while a file is written: another thread that blames may end the process when it returns.
  MutexLock lock(&mutex_);
  Device& tries = devices_[device];
  if (tries.variant.empty()) return;
  Log("error", "the device failed while a variant was tried, which will not be tried again",
      {{"problem", tries.problem}, {"variant", tries.variant}, {"reason", std::string(reason)}});
  if (tries.condemn) tries.condemn(tries.problem, tries.variant);
  tries.variant.clear();
}

std::unique_ptr<DeviceWatchdog> WatchDevices(int devices, absl::Duration timeout, Attempts& attempts,
                                             std::function<void(const std::string& stall)> fail) {
  auto watchdog = std::make_unique<DeviceWatchdog>(
      devices, DeviceWatchdog::Options{.base = timeout},
      [&attempts, fail = std::move(fail)](const DeviceWatchdog::Stall& stall) {
        const std::string seen = ToString(stall);
        attempts.Blame(stall.device, seen);
        fail(seen);
      });
  attempts.Watch(*watchdog);
  return watchdog;
}

}  // namespace warpline
