#include "server/device/watchdog.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace warpline {
namespace {

constexpr double kEstimates = 10;  // an estimate is wrong by less, and other lanes share the device

}  // namespace

DeviceWatchdog::DeviceWatchdog(int devices, Options options, std::function<void(const Stall&)> on_stall)
    : options_(std::move(options)),
      on_stall_(std::move(on_stall)),
      devices_(static_cast<std::size_t>(devices)),
      polled_(options_.now()) {
  if (options_.base > absl::ZeroDuration() && options_.period > absl::ZeroDuration()) {
    thread_ = std::thread([this] { Loop(); });
  }
}

DeviceWatchdog::~DeviceWatchdog() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

DeviceWatchdog::Token DeviceWatchdog::Started(int index, double estimate_seconds) {
  if (options_.base <= absl::ZeroDuration()) return {};
  Device& device = devices_[static_cast<std::size_t>(index)];
  const Clock::time_point now = options_.now();
  MutexLock lock(&device.mutex);
  if (device.running++ == 0) device.progress = now;
  if (device.free.empty()) {
    device.free.push_back(static_cast<int>(device.estimates.size()));
    device.estimates.push_back(-1);
  }
  const int slot = device.free.back();
  device.free.pop_back();
  device.estimates[static_cast<std::size_t>(slot)] = std::max(estimate_seconds, 0.0);
  return {index, slot};
}

void DeviceWatchdog::Ended(Token token) {
  if (token.device < 0) return;
  Device& device = devices_[static_cast<std::size_t>(token.device)];
  const Clock::time_point now = options_.now();
  MutexLock lock(&device.mutex);
  device.estimates[static_cast<std::size_t>(token.slot)] = -1;
  device.free.push_back(token.slot);
  --device.running;
  device.progress = now;
}

DeviceWatchdog::Stall DeviceWatchdog::Look(int index, Clock::time_point now, Clock::duration stood_still) {
  Device& device = devices_[static_cast<std::size_t>(index)];
  MutexLock lock(&device.mutex);
  Stall stall{.device = index, .jobs = device.running};
  if (device.running == 0) return stall;
  device.progress = std::min(device.progress + stood_still, now);
  const double longest = *std::max_element(device.estimates.begin(), device.estimates.end());
  stall.limit = options_.base + kEstimates * absl::Seconds(longest);
  stall.without_progress = absl::FromChrono(now - device.progress);
  return stall;
}

void DeviceWatchdog::Poll() {
  const Clock::time_point now = options_.now();
  Clock::duration stood_still{};
  {
    MutexLock lock(&mutex_);
    if (told_ || options_.base <= absl::ZeroDuration()) return;
    // The thread that looks every second has not looked for long: then nobody ran.
    const Clock::duration period = absl::ToChronoNanoseconds(std::max(options_.period, absl::Seconds(1)));
    const Clock::duration since = now - polled_;
    if (since > 2 * period) stood_still = since - period;
    polled_ = now;
  }
  for (int i = 0; i < static_cast<int>(devices_.size()); ++i) {
    const Stall stall = Look(i, now, stood_still);
    if (stall.without_progress <= stall.limit) continue;
    {
      MutexLock lock(&mutex_);
      if (std::exchange(told_, true)) return;
    }
    on_stall_(stall);
    return;
  }
}

void DeviceWatchdog::Loop() {
  for (;;) {
    {
      MutexLock lock(&mutex_);
      if (mutex_.AwaitUntil([this] { return stopping_; }, After(options_.period))) return;
    }
    Poll();
  }
}

std::string ToString(const DeviceWatchdog::Stall& stall) {
  return absl::StrCat("device ", stall.device, " has made no progress for ",
                      absl::FormatDuration(stall.without_progress), " with ", stall.jobs,
                      stall.jobs == 1 ? " job" : " jobs", " on it; the limit is ",
                      absl::FormatDuration(stall.limit));
}

}  // namespace warpline
