// The rates that a GPU reaches. The cost of programs on the GPU is estimated from them.
#ifndef WARPLINE_SERVER_DEVICE_CUDA_RATES_H_
#define WARPLINE_SERVER_DEVICE_CUDA_RATES_H_

#include "kernels/variant.h"
#include "server/device/roofline.h"
#include "server/plan/cost.h"

namespace warpline {

// Returns the rates that the roofline measured. An unknown rate (0: not measured, or there is no cuBLASLt) is
// replaced by that of one multiprocessor of the slowest GPU that we compile for, times the number of
// multiprocessors. Pure.
DeviceRates CudaRates(const Roofline& roofline, const DeviceTraits& traits);

}  // namespace warpline

#endif  // WARPLINE_SERVER_DEVICE_CUDA_RATES_H_
