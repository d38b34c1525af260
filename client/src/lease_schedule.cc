#include "client/src/lease_schedule.h"

#include <algorithm>

namespace warpline::client {
namespace {

// Minimum wait between renewals, whatever length of lease the server gives.
constexpr absl::Duration kShortestWait = absl::Milliseconds(50);
// Maximum wait between renewals. Renewing is cheap, and a server may allow leases longer than a clock can
// count.
constexpr absl::Duration kLongestWait = absl::Hours(1);

LeaseSchedule::Time HalfOf(absl::Duration ttl, LeaseSchedule::Time now) {
  const absl::Duration wait = std::clamp(ttl / 2, kShortestWait, kLongestWait);
  return now + std::chrono::nanoseconds(absl::ToInt64Nanoseconds(wait));
}

// After one of these errors the tensor cannot be renewed, so retrying is useless.
bool IsFinal(absl::StatusCode code) {
  return code == absl::StatusCode::kNotFound || code == absl::StatusCode::kFailedPrecondition ||
         code == absl::StatusCode::kUnimplemented;
}

}  // namespace

void LeaseSchedule::SetDue(std::uint64_t key, Lease& lease, std::optional<Time> due) {
  if (lease.due) due_.erase({*lease.due, key});
  lease.due = due;
  if (due) due_.emplace(*due, key);
}

std::vector<std::uint64_t> LeaseSchedule::KeysOf(std::string_view id) const {
  std::vector<std::uint64_t> keys;
  const auto [first, last] = keys_.equal_range(id);
  for (auto entry = first; entry != last; ++entry) keys.push_back(entry->second);
  return keys;
}

void LeaseSchedule::Add(std::uint64_t key, HeldTensor tensor, Time now) {
  keys_.emplace(tensor.id, key);
  Lease& lease = leases_[key] = {.tensor = std::move(tensor), .due = {}};
  SetDue(key, lease, HalfOf(lease.tensor.ttl, now));
}

std::optional<HeldTensor> LeaseSchedule::Remove(std::uint64_t key) {
  const auto lease = leases_.find(key);
  if (lease == leases_.end()) return std::nullopt;
  SetDue(key, lease->second, std::nullopt);
  HeldTensor tensor = std::move(lease->second.tensor);
  leases_.erase(lease);
  const auto [first, last] = keys_.equal_range(tensor.id);
  keys_.erase(std::find_if(first, last, [key](const auto& entry) { return entry.second == key; }));
  return tensor;
}

void LeaseSchedule::Forget(std::string_view id) {
  for (const std::uint64_t key : KeysOf(id)) Remove(key);
}

void LeaseSchedule::Restart(std::string_view id, absl::Duration ttl, Time now) {
  for (const std::uint64_t key : KeysOf(id)) {
    Lease& lease = leases_.at(key);
    lease.tensor.ttl = ttl;
    SetDue(key, lease, HalfOf(ttl, now));
  }
}

std::optional<absl::Duration> LeaseSchedule::LengthOf(std::string_view id) const {
  std::optional<absl::Duration> least;
  for (const std::uint64_t key : KeysOf(id)) {
    const absl::Duration ttl = leases_.at(key).tensor.ttl;
    least = std::min(least.value_or(ttl), ttl);
  }
  return least;
}

std::optional<LeaseSchedule::Time> LeaseSchedule::Next() const {
  if (due_.empty()) return std::nullopt;
  return due_.begin()->first;
}

std::vector<std::pair<std::uint64_t, std::string>> LeaseSchedule::TakeDue(Time now, std::size_t count) {
  std::vector<std::pair<std::uint64_t, std::string>> taken;
  if (due_.empty() || due_.begin()->first > now) return taken;
  // Tensors that were made shortly after each other are renewed together. Some are therefore renewed after a
  // quarter of their lease.
  const Time soon = HalfOf(leases_.at(due_.begin()->second).tensor.ttl / 2, now);
  while (taken.size() < count && !due_.empty() && due_.begin()->first <= soon) {
    const std::uint64_t key = due_.begin()->second;
    Lease& lease = leases_.at(key);
    SetDue(key, lease, std::nullopt);
    taken.emplace_back(key, lease.tensor.id);
  }
  return taken;
}

void LeaseSchedule::Renewed(std::uint64_t key, absl::Duration ttl, Time now) {
  const auto lease = leases_.find(key);
  if (lease == leases_.end() || lease->second.due) return;
  lease->second.tensor.ttl = ttl;
  SetDue(key, lease->second, HalfOf(ttl, now));
}

void LeaseSchedule::Failed(std::uint64_t key, absl::StatusCode code, Time now) {
  const auto lease = leases_.find(key);
  if (lease == leases_.end()) return;
  if (IsFinal(code)) {
    Remove(key);
  } else if (!lease->second.due) {
    // Half of the lease is left. That is enough time for several attempts.
    SetDue(key, lease->second, HalfOf(lease->second.tensor.ttl / 4, now));
  }
}

std::vector<HeldTensor> LeaseSchedule::End() {
  std::vector<HeldTensor> tensors;
  for (auto& [key, lease] : leases_) {
    if (lease.tensor.owned) tensors.push_back(std::move(lease.tensor));
  }
  leases_.clear();
  keys_.clear();
  due_.clear();
  return tensors;
}

}  // namespace warpline::client
