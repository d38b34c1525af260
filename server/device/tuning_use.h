// A device while it tries a variant.
#ifndef WARPLINE_SERVER_DEVICE_TUNING_USE_H_
#define WARPLINE_SERVER_DEVICE_TUNING_USE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "server/device/attempts.h"
#include "server/device/cuda_device.h"

namespace warpline {

// The lanes take it for a job of the device, and whoever notices that the device fails meanwhile blames the
// variant. `device` and `attempts` outlive it.
class TuningUse {
 public:
  TuningUse(CudaDevice& device, Attempts& attempts, const std::string& problem, std::string_view variant)
      : attempt_(attempts, device.info.ordinal, problem, variant),
        device_(device),
        order_(device.launched.fetch_add(1) + 1),
        began_alone_(device.running.fetch_add(1) == 0) {}
  ~TuningUse() { device_.running.fetch_sub(1); }
  TuningUse(const TuningUse&) = delete;
  TuningUse& operator=(const TuningUse&) = delete;

  // No other job has used the device since.
  bool IsAlone() const {
    return began_alone_ && device_.launched.load() == order_ && device_.running.load() == 1;
  }

 private:
  const Attempts::Attempt attempt_;
  CudaDevice& device_;
  const std::uint64_t order_;
  const bool began_alone_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_DEVICE_TUNING_USE_H_
