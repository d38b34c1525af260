// Measures how fast one GPU gets bytes from another.
#ifndef WARPLINE_SERVER_DEVICE_PEER_RATE_H_
#define WARPLINE_SERVER_DEVICE_PEER_RATE_H_

#include "server/device/cuda_device.h"

namespace warpline {

// Returns bytes per second of a copy of some ten MiB, in a millisecond. Both devices have their pools, and
// nothing runs on them. If the copy fails, logs why and returns a rate that is slow enough for any link.
double MeasurePeerRate(const CudaDevice& from, const CudaDevice& to);

}  // namespace warpline

#endif  // WARPLINE_SERVER_DEVICE_PEER_RATE_H_
