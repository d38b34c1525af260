// Decides how much memory of a device the daemon takes: a pure function of the wanted and the free memory.
#ifndef WARPLINE_SERVER_DEVICE_DEVICE_BUDGET_H_
#define WARPLINE_SERVER_DEVICE_DEVICE_BUDGET_H_

#include <cstddef>

#include "absl/status/statusor.h"

namespace warpline {

// All in bytes.
struct DeviceMemoryQuestion {
  std::size_t wanted = 0;
  // The operator has set `wanted`, so less is an error.
  bool exact = false;
  std::size_t least = 0;   // with less memory nothing useful runs
  std::size_t free = 0;    // of the device, at present
  std::size_t margin = 0;  // part of `free` that must stay free for everything that is allocated later
};

// Returns the bytes to take: `wanted` if the figure is exact, otherwise the smaller of `wanted` and free -
// margin. Errors name the figures. UNAVAILABLE: the device has less than `least`. INVALID_ARGUMENT: an exact
// figure is below `least`. RESOURCE_EXHAUSTED: an exact figure is more than free - margin.
absl::StatusOr<std::size_t> DecideDeviceBytes(const DeviceMemoryQuestion& question);

}  // namespace warpline

#endif  // WARPLINE_SERVER_DEVICE_DEVICE_BUDGET_H_
