// The rates that a GPU reaches. The cost of programs on the GPU is estimated from them.
#ifndef WARPLINE_SERVER_DEVICE_CUDA_RATES_H_
#define WARPLINE_SERVER_DEVICE_CUDA_RATES_H_

#include "kernels/variant.h"
#include "server/device/roofline.h"
#include "server/plan/cost.h"

namespace warpline {

// The rates that the roofline measured. A rate that it does not know (0: not measured, or there is no
// cuBLASLt) is taken to be what as many multiprocessors of the slowest GPUs that we compile for would reach.
// Pure.
DeviceRates CudaRates(const Roofline& roofline, const DeviceTraits& traits);

}  // namespace warpline

#endif  // WARPLINE_SERVER_DEVICE_CUDA_RATES_H_
