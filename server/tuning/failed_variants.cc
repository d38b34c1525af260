#include "server/tuning/failed_variants.h"

#include "absl/strings/str_cat.h"

namespace warpline {

bool HasFailed(const FailedVariants& failed, const std::string& problem, std::string_view variant) {
  const auto found = failed.find(problem);
  return found != failed.end() && found->second.contains(variant);
}

absl::Status LeaveOutFailed(const FailedVariants& failed, const std::string& problem,
                            std::vector<std::string_view>& candidates) {
  if (!candidates.empty() && HasFailed(failed, problem, candidates.front())) {
    return absl::FailedPreconditionError(
        absl::StrCat("the device failed when it was tuned with ", std::string(candidates.front()),
                     ", which is what runs without tuning; the tuning file says so"));
  }
  std::erase_if(candidates, [&](std::string_view variant) { return HasFailed(failed, problem, variant); });
  return absl::OkStatus();
}

}  // namespace warpline
