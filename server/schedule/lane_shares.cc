#include "server/schedule/lane_shares.h"

#include <algorithm>

namespace warpline {
namespace {

// How often claimants are looked for that are to be forgotten.
constexpr std::chrono::milliseconds kLookPeriod{10};

}  // namespace

void LaneShares::Arrive(const Claimant& claimant) {
  const auto [client, is_new] = clients_.try_emplace(claimant);
  if (client->second.jobs++ > 0) return;
  ShareUse& share = shares_[claimant.share];
  ++share.busy_clients;
  if (!is_new) --share.idle_clients;
}

void LaneShares::Leave(const Claimant& claimant, MonotonicTime now) {
  ClientUse& client = clients_[claimant];
  client.left = now;
  if (--client.jobs == 0) {
    ShareUse& share = shares_[claimant.share];
    --share.busy_clients;
    ++share.idle_clients;
  }
  if (now >= next_look_) Forget(now);
}

void LaneShares::Start(const Claimant& claimant, double seconds) {
  ShareUse& share = shares_[claimant.share];
  ++busy_lanes_;
  ++share.lanes;
  share.seconds += seconds;
}

void LaneShares::End(const Claimant& claimant, double seconds) {
  ShareUse& share = shares_[claimant.share];
  --busy_lanes_;
  --share.lanes;
  share.seconds = share.lanes == 0 ? 0 : share.seconds - seconds;
}

bool LaneShares::MayStart(const Claimant& claimant, double seconds, MonotonicTime now) {
  const ShareUse& own = shares_[claimant.share];
  if (own.lanes == 0) return true;
  if (own.seconds + seconds > options_.seconds_max) return false;
  if (now >= next_look_) Forget(now);
  const auto idle_shares = std::count_if(shares_.begin(), shares_.end(),
                                         [](const auto& share) { return share.second.busy_clients == 0; });
  return options_.lanes - busy_lanes_ > own.idle_clients + idle_shares;
}

void LaneShares::Forget(MonotonicTime now) {
  next_look_ = now + kLookPeriod;
  absl::erase_if(clients_, [&](const auto& entry) {
    const auto& [claimant, client] = entry;
    if (client.jobs > 0 || now - client.left < kMemory) return false;
    const auto share = shares_.find(claimant.share);
    --share->second.idle_clients;
    if (share->second.idle_clients + share->second.busy_clients == 0) shares_.erase(share);
    return true;
  });
}

}  // namespace warpline
