#include "server/schedule/fair_budget.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/base/errors.h"

namespace warpline {
namespace {

std::int64_t ThreeQuarters(std::int64_t units) { return units - units / 4; }

// Entries that drop to 0 are removed from the map.
template <typename Map, typename Key>
void AddTo(Map& map, const Key& key, std::int64_t units) {
  const auto entry = map.try_emplace(key, 0).first;
  entry->second += units;
  if (entry->second == 0) map.erase(entry);
}

}  // namespace

FairBudget::Part& FairBudget::Part::operator=(Part&& other) noexcept {
  if (this == &other) return *this;
  Return();
  budget_ = std::exchange(other.budget_, nullptr);
  claimant_ = other.claimant_;
  units_ = other.units_;
  return *this;
}

void FairBudget::Part::Return() {
  if (budget_ == nullptr) return;
  FairBudget& budget = *std::exchange(budget_, nullptr);
  MutexLock lock(&budget.mutex_);
  budget.Add(claimant_, -units_);
}

absl::StatusOr<FairBudget::Part> FairBudget::Take(const Claimant& claimant, std::int64_t units) {
  MutexLock lock(&mutex_);
  const std::int64_t held = Held(claimant), limit = LimitOf(claimant);
  const bool is_first =
      options_.first_is_granted && Held(claimant.share) == 0 && units <= options_.total - used_;
  if (!is_first && units > Largest(claimant)) {
    return absl::ResourceExhaustedError(
        absl::StrCat(units, " ", options_.what, " are more than one client may have at a time, which is ",
                     Largest(claimant), " of the server's ", options_.total));
  }
  if (!is_first && held + units > limit) {
    return WithRetryAfter(
        absl::ResourceExhaustedError(absl::StrCat(
            "the server is full: of ", options_.total, " ", options_.what, " ", used_, " are in use, ", held,
            " of them by this client, which may have ", limit, " at present and wants ", units, " more")),
        options_.retry_after);
  }
  Add(claimant, units);
  Part part;
  part.budget_ = this;
  part.claimant_ = claimant;
  part.units_ = units;
  return part;
}

std::int64_t FairBudget::LimitOf(const Claimant& claimant) const {
  const std::int64_t share_held = Held(claimant.share), held = Held(claimant);
  const std::int64_t share_limit = ThreeQuarters(options_.total - (used_ - share_held));
  // An identity (client 0) has no clients that share its part, so it may use all of it. So may a client that
  // holds nothing yet, if the first units are granted.
  const std::int64_t others = share_held - held;
  const std::int64_t left = std::max<std::int64_t>(share_limit - others, 0);
  const bool is_granted = options_.first_is_granted && held == 0;
  return claimant.client == 0 || is_granted ? left : ThreeQuarters(left);
}

std::int64_t FairBudget::Largest(const Claimant& claimant) const {
  if (options_.first_is_granted) return options_.total;
  const std::int64_t share = ThreeQuarters(options_.total);
  return claimant.client == 0 ? share : ThreeQuarters(share);
}

std::int64_t FairBudget::held(OwnerId share) const {
  MutexLock lock(&mutex_);
  return Held(share);
}

std::int64_t FairBudget::Held(OwnerId share) const {
  const auto found = shares_.find(share);
  return found != shares_.end() ? found->second : 0;
}

std::int64_t FairBudget::Held(const Claimant& claimant) const {
  const auto found = clients_.find(claimant);
  return found != clients_.end() ? found->second : 0;
}

void FairBudget::Add(const Claimant& claimant, std::int64_t units) {
  used_ += units;
  AddTo(shares_, claimant.share, units);
  AddTo(clients_, claimant, units);
}

std::int64_t FairBudget::used() const {
  MutexLock lock(&mutex_);
  return used_;
}

}  // namespace warpline
