#include "client/src/lease_schedule.h"

#include <algorithm>

namespace warpline::client {
namespace {

// Whatever a server says, it is not asked more often than this.
constexpr absl::Duration kShortestWait = absl::Milliseconds(50);
// Renewing costs next to nothing, and a server may allow leases that are longer than a clock can count.
constexpr absl::Duration kLongestWait = absl::Hours(1);

LeaseSchedule::Time HalfOf(absl::Duration ttl, LeaseSchedule::Time now) {
  const absl::Duration wait = std::clamp(ttl / 2, kShortestWait, kLongestWait);
  return now + std::chrono::nanoseconds(absl::ToInt64Nanoseconds(wait));
}

// After these there is nothing to renew, however often it is tried.
bool IsFinal(absl::StatusCode code) {
  return code == absl::StatusCode::kNotFound || code == absl::StatusCode::kFailedPrecondition ||
         code == absl::StatusCode::kUnimplemented;
}

}  // namespace

void LeaseSchedule::Add(std::uint64_t key, const std::string& id, absl::Duration ttl, bool owned, Time now) {
  leases_[key] = {id, ttl, owned, HalfOf(ttl, now)};
}

std::optional<std::string> LeaseSchedule::Remove(std::uint64_t key) {
  const auto lease = leases_.find(key);
  if (lease == leases_.end()) return std::nullopt;
  std::optional<std::string> id;
  if (lease->second.owned) id = std::move(lease->second.id);
  leases_.erase(lease);
  return id;
}

std::optional<LeaseSchedule::Time> LeaseSchedule::Next() const {
  std::optional<Time> next;
  for (const auto& [key, lease] : leases_) {
    if (lease.due && (!next || *lease.due < *next)) next = lease.due;
  }
  return next;
}

std::optional<std::pair<std::uint64_t, std::string>> LeaseSchedule::TakeDue(Time now) {
  for (auto& [key, lease] : leases_) {
    if (!lease.due || *lease.due > now) continue;
    lease.due.reset();
    return std::pair(key, lease.id);
  }
  return std::nullopt;
}

void LeaseSchedule::Renewed(std::uint64_t key, absl::Duration ttl, Time now) {
  const auto lease = leases_.find(key);
  if (lease == leases_.end()) return;
  lease->second.ttl = ttl;
  lease->second.due = HalfOf(ttl, now);
}

void LeaseSchedule::Failed(std::uint64_t key, absl::StatusCode code, Time now) {
  const auto lease = leases_.find(key);
  if (lease == leases_.end()) return;
  if (IsFinal(code)) {
    leases_.erase(lease);
  } else {
    // Half of the lease is left, in which there is room for several attempts.
    lease->second.due = HalfOf(lease->second.ttl / 4, now);
  }
}

std::vector<std::string> LeaseSchedule::End() {
  std::vector<std::string> ids;
  for (auto& [key, lease] : leases_) {
    if (lease.owned) ids.push_back(std::move(lease.id));
  }
  leases_.clear();
  return ids;
}

}  // namespace warpline::client
