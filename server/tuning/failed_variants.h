// Variants that must not be tried again.
#ifndef WARPLINE_SERVER_TUNING_FAILED_VARIANTS_H_
#define WARPLINE_SERVER_TUNING_FAILED_VARIANTS_H_

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace warpline {

// The failed variants, or configurations of variants, by ProblemText. The device failed with each of them
// while it was tuned, so that the process had to end.
using FailedVariants = std::map<std::string, std::set<std::string, std::less<>>>;

bool HasFailed(const FailedVariants& failed, const std::string& problem, std::string_view variant);

// Removes those that have failed for this problem from `candidates`, of which the first is what runs without
// tuning. FAILED_PRECONDITION if that one has failed: then there is nothing to compare the others with.
absl::Status LeaveOutFailed(const FailedVariants& failed, const std::string& problem,
                            std::vector<std::string_view>& candidates);

}  // namespace warpline

#endif  // WARPLINE_SERVER_TUNING_FAILED_VARIANTS_H_
