// Chooses the device of a job by what its operands and the load of the devices say. Pure functions.
#ifndef WARPLINE_SERVER_SCHEDULE_CHOOSE_DEVICE_H_
#define WARPLINE_SERVER_SCHEDULE_CHOOSE_DEVICE_H_

#include <cstddef>
#include <span>

namespace warpline {

// A device, as one job sees it.
struct DeviceView {
  std::size_t operand_bytes = 0;     // of the job's resident operands that it has, as homes or replicas
  double busy_seconds = 0;           // DeviceLoad
  double copy_bytes_per_second = 0;  // from other devices to it
};

// Returns the device that has most bytes of the operands. Of equal ones it is the least busy, then the first.
int DeviceWithMostBytes(std::span<const DeviceView> devices);

// Returns the device where the job is expected to end first, if operands of `bytes` bytes that a device lacks
// are copied to it before. A tie is won by DeviceWithMostBytes.
int DeviceThatEndsFirst(std::span<const DeviceView> devices, std::size_t bytes);

}  // namespace warpline

#endif  // WARPLINE_SERVER_SCHEDULE_CHOOSE_DEVICE_H_
