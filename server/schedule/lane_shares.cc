#include "server/schedule/lane_shares.h"

#include <algorithm>

namespace warpline {
namespace {

// How often claimants are looked for that are to be forgotten.
constexpr std::chrono::milliseconds kLookPeriod{10};

// The part of so many lanes that the fraction is, at least one.
int Part(int lanes, double fraction) { return std::max(1, static_cast<int>(lanes * fraction + 1e-9)); }

}  // namespace

void LaneShares::Arrive(const Claimant& claimant, double weight) {
  const auto [client, is_new] = clients_.try_emplace(claimant);
  ++client->second.jobs;
  ShareUse& share = shares_[claimant.share];
  share.weight = weight;
  if (is_new) ++share.clients;
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
  double weights = 0;
  for (const auto& [id, share] : shares_) weights += share.weight;
  const int share_lanes = Part(options_.lanes, own.weight / weights);
  const int client_lanes = Part(share_lanes, 1.0 / own.clients);
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
