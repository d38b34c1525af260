// Candidates timed on a GPU, beside the jobs of its lanes.
#ifndef WARPLINE_SERVER_DEVICE_CUDA_WORKBENCH_H_
#define WARPLINE_SERVER_DEVICE_CUDA_WORKBENCH_H_

#include <memory>

#include "absl/status/statusor.h"
#include "server/device/attempts.h"
#include "server/device/cuda_device.h"
#include "server/plan/cost.h"
#include "server/tuning/failed_variants.h"
#include "server/tuning/workbench.h"

namespace warpline {

// Quiet is a device on which no job has begun or run for some milliseconds; a job that comes then waits for
// half a millisecond of kernels, or for one launch that takes longer, at most 25 ms. Operands are random;
// where a set of them does not fit well into the L2, several take turns. They take memory of the device
// beside all of the server's own, and give it back. What has `failed` is not run; what runs is one of
// `attempts`, until the device's Completion has been told of an error. `device` and `attempts` outlive the
// workbench.
absl::StatusOr<std::unique_ptr<Workbench>> CreateCudaWorkbench(CudaDevice& device, const DeviceRates& rates,
                                                               FailedVariants failed, Attempts& attempts);

}  // namespace warpline

#endif  // WARPLINE_SERVER_DEVICE_CUDA_WORKBENCH_H_
