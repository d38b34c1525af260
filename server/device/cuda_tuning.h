// Tuned choices for the GPUs of a backend.
#ifndef WARPLINE_SERVER_DEVICE_CUDA_TUNING_H_
#define WARPLINE_SERVER_DEVICE_CUDA_TUNING_H_

#include <memory>
#include <span>

#include "absl/status/status.h"
#include "server/device/attempts.h"
#include "server/device/cuda_device.h"
#include "server/observe/metrics.h"
#include "server/tuning/tuning_store.h"

namespace warpline {

// Gives each device what the store has for its kind, and if the store writes, the first device of each kind a
// tuner for what it does not have. What is condemned among `attempts` goes to the store. Both outlive the
// devices.
absl::Status SetUpTuning(std::span<const std::unique_ptr<CudaDevice>> devices, TuningStore& store,
                         Attempts& attempts, Metrics& metrics);

}  // namespace warpline

#endif  // WARPLINE_SERVER_DEVICE_CUDA_TUNING_H_
