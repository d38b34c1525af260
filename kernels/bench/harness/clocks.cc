#include "kernels/bench/harness/clocks.h"

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace warpline::bench {

// nvml.h is not part of every toolkit: the few declarations that we need, as its documentation gives them.
struct ClockSampler::Nvml {
  using Handle = struct nvmlDevice*;
  static constexpr int kClockSm = 1, kClockMemory = 2;
  int (*init)();
  int (*shutdown)();
  int (*handle_by_pci_bus_id)(const char*, Handle*);
  int (*clock_info)(Handle, int, unsigned*);
  int (*power_usage)(Handle, unsigned*);
  int (*throttle_reasons)(Handle, unsigned long long*);  // may be null
  Handle device = nullptr;

  static std::unique_ptr<Nvml> Load(const std::string& pci_bus_id) {
    void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return nullptr;
    auto nvml = std::make_unique<Nvml>();
    const auto find = [library](auto& function, const char* name) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
      return function != nullptr;
    };
    if (!find(nvml->init, "nvmlInit_v2") || !find(nvml->shutdown, "nvmlShutdown") ||
        !find(nvml->handle_by_pci_bus_id, "nvmlDeviceGetHandleByPciBusId_v2") ||
        !find(nvml->clock_info, "nvmlDeviceGetClockInfo") ||
        !find(nvml->power_usage, "nvmlDeviceGetPowerUsage")) {
      return nullptr;
    }
    find(nvml->throttle_reasons, "nvmlDeviceGetCurrentClocksThrottleReasons");
    if (nvml->init() != 0) return nullptr;
    if (nvml->handle_by_pci_bus_id(pci_bus_id.c_str(), &nvml->device) != 0) {
      nvml->shutdown();
      return nullptr;
    }
    return nvml;
  }
};

ClockSampler::ClockSampler(const std::string& pci_bus_id) : nvml_(Nvml::Load(pci_bus_id)) {
  if (nvml_ != nullptr) thread_ = std::thread([this] { Run(); });
}

ClockSampler::~ClockSampler() {
  if (nvml_ == nullptr) return;
  stop_ = true;
  thread_.join();
  nvml_->shutdown();
}

void ClockSampler::Run() {
  while (!stop_) {
    Sample sample = {};
    if (nvml_->clock_info(nvml_->device, Nvml::kClockSm, &sample.sm_mhz) == 0 &&
        nvml_->clock_info(nvml_->device, Nvml::kClockMemory, &sample.memory_mhz) == 0) {
      if (nvml_->power_usage(nvml_->device, &sample.milliwatts) != 0) sample.milliwatts = 0;
      if (nvml_->throttle_reasons != nullptr &&
          nvml_->throttle_reasons(nvml_->device, &sample.throttle_reasons) != 0) {
        sample.throttle_reasons = 0;
      }
      const std::lock_guard lock(mutex_);
      samples_.push_back(sample);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

ClockSummary ClockSampler::Take() {
  std::vector<Sample> samples;
  {
    const std::lock_guard lock(mutex_);
    samples = std::exchange(samples_, {});
  }
  ClockSummary summary;
  summary.samples = static_cast<int>(samples.size());
  if (samples.empty()) return summary;
  const auto sorted = [&](unsigned Sample::*member) {
    std::vector<unsigned> values;
    for (const Sample& sample : samples) values.push_back(sample.*member);
    std::sort(values.begin(), values.end());
    return values;
  };
  const std::vector<unsigned> sm = sorted(&Sample::sm_mhz), memory = sorted(&Sample::memory_mhz);
  const std::vector<unsigned> power = sorted(&Sample::milliwatts);
  const std::size_t middle = samples.size() / 2;
  summary.sm_mhz_least = sm.front();
  summary.sm_mhz_median = sm[middle];
  summary.memory_mhz_least = memory.front();
  summary.memory_mhz_median = memory[middle];
  summary.power_watts_median = power[middle] / 1000;
  summary.power_watts_greatest = power.back() / 1000;
  for (const Sample& sample : samples) summary.throttle_reasons |= sample.throttle_reasons;
  return summary;
}

std::string ClockSummary::ToString() const {
  if (samples == 0) return "clocks not known";
  return absl::StrFormat("SM %u MHz (least %u), memory %u MHz (least %u), %u W (most %u), throttle bits 0x%x",
                         sm_mhz_median, sm_mhz_least, memory_mhz_median, memory_mhz_least, power_watts_median,
                         power_watts_greatest, throttle_reasons);
}

}  // namespace warpline::bench
