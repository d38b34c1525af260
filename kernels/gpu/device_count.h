#ifndef WARPLINE_KERNELS_GPU_DEVICE_COUNT_H_
#define WARPLINE_KERNELS_GPU_DEVICE_COUNT_H_

#include "absl/status/statusor.h"

namespace warpline::gpu {

// Returns at least one. UNAVAILABLE, with the reason, if there is no GPU or no driver for this CUDA runtime.
absl::StatusOr<int> CountDevices();

// True if a driver is installed and does not say that there is no GPU. Also true if CountDevices fails
// because the driver is too old or not ready.
bool GpuIsPresent();

}  // namespace warpline::gpu

#endif  // WARPLINE_KERNELS_GPU_DEVICE_COUNT_H_
