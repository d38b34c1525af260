#include "server/device/named_devices.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "kernels/status_macros.h"

namespace warpline {
namespace {

absl::StatusOr<int> FindDevice(const std::string& name, std::span<const std::string> uuids) {
  if (int ordinal = 0; absl::SimpleAtoi(name, &ordinal)) {
    if (ordinal >= 0 && ordinal < static_cast<int>(uuids.size())) return ordinal;
    return absl::InvalidArgumentError(
        absl::StrCat("--devices: ", name, " is not in 0..", static_cast<int>(uuids.size()) - 1));
  }
  const auto fits = [&](const std::string& uuid) { return absl::StartsWithIgnoreCase(uuid, name); };
  const auto count = std::count_if(uuids.begin(), uuids.end(), fits);
  if (count == 1) return static_cast<int>(std::find_if(uuids.begin(), uuids.end(), fits) - uuids.begin());
  return absl::InvalidArgumentError(absl::StrCat("--devices: ", name, " is ",
                                                 count == 0 ? "none" : "the beginning of several",
                                                 " of the devices ", absl::StrJoin(uuids, ", ")));
}

}  // namespace

bool IsUuid(const std::string& name) {
  int ordinal = 0;
  return !absl::SimpleAtoi(name, &ordinal);
}

absl::StatusOr<std::vector<int>> FindNamedDevices(std::span<const std::string> names,
                                                  std::span<const std::string> uuids) {
  std::vector<int> ordinals;
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(const int ordinal, FindDevice(name, uuids));
    if (std::find(ordinals.begin(), ordinals.end(), ordinal) != ordinals.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--devices: ", name, " names device ", ordinal, " for the second time"));
    }
    ordinals.push_back(ordinal);
  }
  return ordinals;
}

absl::Status CheckVisibleDevices(std::string_view value) {
  const std::vector<std::string> names = absl::StrSplit(std::string(value), ',');
  const auto instances = std::count_if(names.begin(), names.end(), [](const std::string& name) {
    return absl::StartsWith(absl::StripAsciiWhitespace(name), "MIG-");
  });
  if (instances <= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "CUDA_VISIBLE_DEVICES=", std::string(value), " names ", instances,
      " MIG instances, of which a process can use one (a rule of CUDA): start a daemon for each"));
}

}  // namespace warpline
