// The GPU's clocks and power while something runs, by NVML if the machine has it.
#ifndef WARPLINE_KERNELS_BENCH_HARNESS_CLOCKS_H_
#define WARPLINE_KERNELS_BENCH_HARNESS_CLOCKS_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace warpline::bench {

// Statistics of the samples since the last Take. `samples` is 0 if nothing is known.
struct ClockSummary {
  int samples = 0;
  unsigned sm_mhz_least = 0, sm_mhz_median = 0;
  unsigned memory_mhz_least = 0, memory_mhz_median = 0;
  unsigned power_watts_median = 0, power_watts_greatest = 0;
  unsigned long long throttle_reasons = 0;  // NVML's bits, any that occurred

  std::string ToString() const;
};

// A thread that samples every 20 ms while it lives. It only asks: no setting of the card is touched.
class ClockSampler {
 public:
  explicit ClockSampler(const std::string& pci_bus_id);
  ~ClockSampler();
  ClockSampler(const ClockSampler&) = delete;
  ClockSampler& operator=(const ClockSampler&) = delete;

  ClockSummary Take();

 private:
  struct Nvml;
  struct Sample {
    unsigned sm_mhz, memory_mhz, milliwatts;
    unsigned long long throttle_reasons;
  };
  void Run();

  std::unique_ptr<Nvml> nvml_;  // null: not known
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;
  std::vector<Sample> samples_;
  std::thread thread_;
};

}  // namespace warpline::bench

#endif  // WARPLINE_KERNELS_BENCH_HARNESS_CLOCKS_H_
