// The limits of one owner.
#ifndef WARPLINE_SERVER_BASE_OWNER_LIMITS_H_
#define WARPLINE_SERVER_BASE_OWNER_LIMITS_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "server/base/owner.h"

namespace warpline {

// Without a limit of its own, only the server's total limits an owner.
struct OwnerLimits {
  // The owner's share of device time, relative to the weights of other owners that need some.
  double weight = 1;
  // The maximum number of admitted, unanswered requests, and the maximum bytes of these and their results
  // together.
  std::optional<std::int64_t> jobs, bytes;
  std::optional<std::int64_t> resident_bytes;  // on each device
  std::optional<std::int64_t> region_bytes;

  friend bool operator==(const OwnerLimits&, const OwnerLimits&) = default;
};

// Called for each request; null if there are no identities.
using LimitsOf = std::function<OwnerLimits(OwnerId)>;

}  // namespace warpline

#endif  // WARPLINE_SERVER_BASE_OWNER_LIMITS_H_
