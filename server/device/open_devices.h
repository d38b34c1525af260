// Decides which of a node's devices the daemon uses. Independent of CUDA, so that tests need no GPU.
#ifndef WARPLINE_SERVER_DEVICE_OPEN_DEVICES_H_
#define WARPLINE_SERVER_DEVICE_OPEN_DEVICES_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "server/observe/log.h"

namespace warpline {

// Says what to do about a device that is full, or that this process cannot use.
enum class OnUnusable : std::uint8_t {
  kFail,  // the operator has named the device
  kSkip,  // the other devices are enough
};

// Calls `open` for each CUDA ordinal. `ordinal` is the number that the device gets among those in use,
// consecutive from 0. A device that fails with UNAVAILABLE or RESOURCE_EXHAUSTED is left out with a warning
// if `on_unusable` is kSkip. Any other error is returned, and so is the last error if no device is left.
// Errors name the CUDA ordinal.
template <typename Device>
absl::StatusOr<std::vector<Device>> OpenDevices(
    const std::vector<int>& cuda_ordinals, OnUnusable on_unusable,
    absl::FunctionRef<absl::StatusOr<Device>(int cuda_ordinal, int ordinal)> open) {
  std::vector<Device> devices;
  absl::Status last_error = absl::UnavailableError("there is no device");
  for (const int cuda_ordinal : cuda_ordinals) {
    absl::StatusOr<Device> device = open(cuda_ordinal, static_cast<int>(devices.size()));
    if (device.ok()) {
      devices.push_back(*std::move(device));
      continue;
    }
    const std::string reason(device.status().message());
    last_error =
        absl::Status(device.status().code(), absl::StrCat("CUDA device ", cuda_ordinal, ": ", reason));
    const bool may_skip = absl::IsUnavailable(last_error) || absl::IsResourceExhausted(last_error);
    if (on_unusable == OnUnusable::kFail || !may_skip) return last_error;
    Log("warning", "device skipped", {{"cuda_ordinal", absl::StrCat(cuda_ordinal)}, {"reason", reason}});
  }
  if (devices.empty()) return last_error;
  return devices;
}

}  // namespace warpline

#endif  // WARPLINE_SERVER_DEVICE_OPEN_DEVICES_H_
