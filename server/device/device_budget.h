// How much memory of a device the daemon takes: a pure function of what is wanted and what is there.
#ifndef WARPLINE_SERVER_DEVICE_DEVICE_BUDGET_H_
#define WARPLINE_SERVER_DEVICE_DEVICE_BUDGET_H_

#include <cstddef>

#include "absl/status/statusor.h"

namespace warpline {

// All in bytes.
struct DeviceMemoryQuestion {
  std::size_t wanted = 0;
  // Less than `wanted` is not accepted: somebody named the figure.
  bool exact = false;
  std::size_t least = 0;   // with less nothing useful runs
  std::size_t free = 0;    // of the device, at present
  std::size_t margin = 0;  // of that, what has to stay free for everything that is allocated later
};

// Returns the bytes to take. An exact figure is taken as it is: `wanted`. Otherwise what is free less the
// margin is taken, if that is less than `wanted`. Errors name the figures. UNAVAILABLE: the device has less
// than `least`. INVALID_ARGUMENT: an exact figure is below `least`. RESOURCE_EXHAUSTED: an exact figure is
// more than what is free less the margin.
absl::StatusOr<std::size_t> DecideDeviceBytes(const DeviceMemoryQuestion& question);

}  // namespace warpline

#endif  // WARPLINE_SERVER_DEVICE_DEVICE_BUDGET_H_
