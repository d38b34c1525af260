#include "server/schedule/lane_shares.h"

#include <algorithm>
#include <cstddef>

namespace warpline {
namespace {

// How often claimants are looked for that are to be forgotten.
constexpr std::chrono::milliseconds kLookPeriod{10};

// The lanes that are left when each of the others, of `all` with this one, has one; at least one.
int LanesBeside(int lanes, std::size_t all) { return std::max(1, lanes - static_cast<int>(all) + 1); }

}  // namespace

void LaneShares::Arrive(const Claimant& claimant) {
  const auto [client, is_new] = clients_.try_emplace(claimant);
  ++client->second.jobs;
  if (is_new) ++shares_[claimant.share].clients;
}

void LaneShares::Leave(const Claimant& claimant, MonotonicTime now) {
  Use& use = clients_[claimant];
  --use.jobs;
  use.left = now;
  if (now >= next_look_) Forget(now);
}

void LaneShares::Start(const Claimant& claimant, double seconds) {
  ++clients_[claimant].lanes;
  ShareUse& share = shares_[claimant.share];
  ++share.lanes;
  share.seconds += seconds;
}

void LaneShares::End(const Claimant& claimant, double seconds) {
  --clients_[claimant].lanes;
  ShareUse& share = shares_[claimant.share];
  --share.lanes;
  share.seconds = share.lanes == 0 ? 0 : share.seconds - seconds;
}

bool LaneShares::MayStart(const Claimant& claimant, double seconds, MonotonicTime now) {
  const ShareUse& own = shares_[claimant.share];
  if (own.lanes == 0) return true;
  if (own.seconds + seconds > options_.seconds_max) return false;
  if (now >= next_look_) Forget(now);
  const int share_lanes = LanesBeside(options_.lanes, shares_.size());
  const int client_lanes = LanesBeside(share_lanes, own.clients);
  return own.lanes < share_lanes && clients_[claimant].lanes < client_lanes;
}

void LaneShares::Forget(MonotonicTime now) {
  next_look_ = now + kLookPeriod;
  absl::erase_if(clients_, [&](const auto& entry) {
    const auto& [claimant, use] = entry;
    if (use.jobs > 0 || now - use.left < kMemory) return false;
    const auto share = shares_.find(claimant.share);
    if (--share->second.clients == 0) shares_.erase(share);
    return true;
  });
}

}  // namespace warpline
