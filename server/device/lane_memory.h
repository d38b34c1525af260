// The memory that a lane keeps for itself. Both the backends and the daemon's default of --device-bytes
// use it.
#ifndef WARPLINE_SERVER_DEVICE_LANE_MEMORY_H_
#define WARPLINE_SERVER_DEVICE_LANE_MEMORY_H_

#include <cstddef>

namespace warpline {

// Device memory of a lane of a GPU. It holds cuBLASLt's 32 MiB of workspace plus 16 MiB, so that products of
// a few MiB, and everything else up to 48 MiB, run as graphs.
constexpr std::size_t kCudaLaneBytes = std::size_t{48} << 20;

}  // namespace warpline

#endif  // WARPLINE_SERVER_DEVICE_LANE_MEMORY_H_
