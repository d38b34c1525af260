#include "server/device/device_budget.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace warpline {

absl::StatusOr<std::size_t> DecideDeviceBytes(const DeviceMemoryQuestion& question) {
  const std::size_t available = question.free - std::min(question.free, question.margin);
  if (question.exact) {
    if (question.wanted < question.least) {
      return absl::InvalidArgumentError(absl::StrCat("--device-bytes=", question.wanted,
                                                     ": the lanes and the smallest pool take ",
                                                     question.least, " bytes; fewer --lanes take less"));
    }
    if (question.wanted > available) {
      return absl::ResourceExhaustedError(absl::StrCat("--device-bytes=", question.wanted, ": ",
                                                       question.free, " bytes are free, of which ",
                                                       question.margin, " must stay free"));
    }
    return question.wanted;
  }
  if (available < question.least) {
    return absl::UnavailableError(absl::StrCat(
        "too little memory: the lanes and the smallest pool take ", question.least, " bytes, and ",
        question.margin, " must stay free; free are ", question.free, "; fewer --lanes take less"));
  }
  return std::min(std::max(question.wanted, question.least), available);
}

}  // namespace warpline
