// What a GPU reaches, by which the cost of programs on it is estimated.
#ifndef WARPLINE_SERVER_DEVICE_CUDA_RATES_H_
#define WARPLINE_SERVER_DEVICE_CUDA_RATES_H_

#include "kernels/variant.h"
#include "server/device/roofline.h"
#include "server/plan/cost.h"

namespace warpline {

// The rates that the roofline measured. Where it is 0 (not measured, or no cuBLASLt), so much for each
// multiprocessor as the slowest GPUs have for which we compile. Pure.
DeviceRates CudaRates(const Roofline& roofline, const DeviceTraits& traits);

}  // namespace warpline

#endif  // WARPLINE_SERVER_DEVICE_CUDA_RATES_H_
