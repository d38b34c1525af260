#include "server/schedule/choose_device.h"

namespace warpline {

int DeviceWithMostBytes(std::span<const DeviceView> devices) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < devices.size(); ++i) {
    const bool more = devices[i].operand_bytes > devices[best].operand_bytes;
    const bool as_many = devices[i].operand_bytes == devices[best].operand_bytes;
    if (more || (as_many && devices[i].busy_seconds < devices[best].busy_seconds)) best = i;
  }
  return static_cast<int>(best);
}

int DeviceThatEndsFirst(std::span<const DeviceView> devices, std::size_t bytes) {
  const auto start = [&](std::size_t i) {
    const auto missing = static_cast<double>(bytes - devices[i].operand_bytes);
    // A node with one device has no rate of copies, but nothing is missing there.
    return devices[i].busy_seconds + (missing > 0 ? missing / devices[i].copy_bytes_per_second : 0);
  };
  auto best = static_cast<std::size_t>(DeviceWithMostBytes(devices));
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (start(i) < start(best)) best = i;
  }
  return static_cast<int>(best);
}

}  // namespace warpline
