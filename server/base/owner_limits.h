// The limits of one owner.
#ifndef WARPLINE_SERVER_BASE_OWNER_LIMITS_H_
#define WARPLINE_SERVER_BASE_OWNER_LIMITS_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "server/base/owner.h"

namespace warpline {

// A limit that is not set leaves the owner limited by the server as a whole only.
struct OwnerLimits {
  // Its share of device time beside others that want some, relative to theirs.
  double weight = 1;
  // The number of requests that are admitted and unanswered, and the bytes of these and their results
  // together.
  std::optional<std::int64_t> jobs, bytes;
  std::optional<std::int64_t> resident_bytes;  // on each device
  std::optional<std::int64_t> region_bytes;

  friend bool operator==(const OwnerLimits&, const OwnerLimits&) = default;
};

// Asked for each request; null where there are no identities.
using LimitsOf = std::function<OwnerLimits(OwnerId)>;

}  // namespace warpline

#endif  // WARPLINE_SERVER_BASE_OWNER_LIMITS_H_
