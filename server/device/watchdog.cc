#include "server/device/watchdog.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace warpline {
namespace {

constexpr double kEstimates = 10;  // estimates are wrong by less than this factor

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
  if (device.free.empty()) {
    device.free.push_back(static_cast<int>(device.jobs.size()));
    device.jobs.emplace_back();
  }
  const int slot = device.free.back();
  device.free.pop_back();
  const double estimate = std::max(estimate_seconds, 0.0);
  device.jobs[static_cast<std::size_t>(slot)] = {
      .runs = true, .started = now, .estimate = estimate, .most_running_seconds = 0};
  ++device.running;
  device.running_seconds += estimate;
  for (Job& job : device.jobs) {
    if (job.runs) job.most_running_seconds = std::max(job.most_running_seconds, device.running_seconds);
  }
  return {index, slot};
}

void DeviceWatchdog::Ended(Token token) {
  if (token.device < 0) return;
  Device& device = devices_[static_cast<std::size_t>(token.device)];
  MutexLock lock(&device.mutex);
  Job& job = device.jobs[static_cast<std::size_t>(token.slot)];
  job.runs = false;
  device.free.push_back(token.slot);
  // Sums of many estimates accumulate rounding errors. Without jobs the sum is exactly 0.
  device.running_seconds = --device.running == 0 ? 0 : device.running_seconds - job.estimate;
}

DeviceWatchdog::Stall DeviceWatchdog::Look(int index, Clock::time_point now, Clock::duration stood_still) {
  Device& device = devices_[static_cast<std::size_t>(index)];
  MutexLock lock(&device.mutex);
  Stall worst{.device = index, .jobs = device.running, .limit = absl::InfiniteDuration()};
  for (Job& job : device.jobs) {
    if (!job.runs) continue;
    job.started = std::min(job.started + stood_still, now);
    const Stall stall{.device = index,
                      .jobs = device.running,
                      .running = absl::FromChrono(now - job.started),
                      .limit = options_.base + kEstimates * absl::Seconds(job.most_running_seconds)};
    if (worst.running - worst.limit < stall.running - stall.limit) worst = stall;
  }
  return worst;
}

void DeviceWatchdog::Poll() {
  const Clock::time_point now = options_.now();
  Clock::duration stood_still{};
  {
    MutexLock lock(&mutex_);
    if (told_ || options_.base <= absl::ZeroDuration()) return;
    // If the thread has not looked for a long time, the whole process stood still.
    const Clock::duration period = absl::ToChronoNanoseconds(std::max(options_.period, absl::Seconds(1)));
    const Clock::duration since = now - polled_;
    if (since > 2 * period) stood_still = since - period;
    polled_ = now;
  }
  for (int i = 0; i < static_cast<int>(devices_.size()); ++i) {
    const Stall stall = Look(i, now, stood_still);
    if (stall.running <= stall.limit) continue;
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
  const int others = stall.jobs - 1;
  return absl::StrCat("a job has run on device ", stall.device, " for ", absl::FormatDuration(stall.running),
                      others == 0 ? std::string(", alone")
                                  : absl::StrCat(", beside ", others, others == 1 ? " other" : " others"),
                      "; its limit is ", absl::FormatDuration(stall.limit));
}

}  // namespace warpline
