// The devices that an operator has named. Independent of CUDA, so that tests need no GPU.
#ifndef WARPLINE_SERVER_DEVICE_NAMED_DEVICES_H_
#define WARPLINE_SERVER_DEVICE_NAMED_DEVICES_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace warpline {

// Returns whether a name is a UUID or the beginning of one, and not an ordinal.
bool IsUuid(const std::string& name);

// Returns the CUDA ordinals of devices. Each name is an ordinal, or a UUID as `nvidia-smi -L` prints it
// ("GPU-" and 32 hexadecimal digits), or a beginning of one that fits no other device. `uuids` has those of
// all devices that CUDA shows to this process, in the order of their ordinals; they may be empty if no name
// is a UUID. INVALID_ARGUMENT, with the name and what there is, if a name fits no device or several, or if
// two names fit the same one.
absl::StatusOr<std::vector<int>> FindNamedDevices(std::span<const std::string> names,
                                                  std::span<const std::string> uuids);

// INVALID_ARGUMENT if this value of CUDA_VISIBLE_DEVICES names several MIG instances: a process can use one,
// and CUDA would leave out the others without a word.
absl::Status CheckVisibleDevices(std::string_view value);

}  // namespace warpline

#endif  // WARPLINE_SERVER_DEVICE_NAMED_DEVICES_H_
