#include "server/schedule/lane_shares.h"

#include <algorithm>
#include <cstddef>

namespace warpline {
namespace {

// How often idle claimants are looked for and forgotten.
constexpr std::chrono::milliseconds kLookPeriod{10};

}  // namespace

void LaneShares::Arrive(const Claimant& claimant) {
  const auto [client, is_new] = clients_.try_emplace(claimant);
  ++client->second.pending;
  if (is_new) ++shares_[claimant.share].idle_clients;
}

void LaneShares::BecomeReady(const Claimant& claimant) {
  ClientUse& client = clients_[claimant];
  --client.pending;
  if (client.ready++ > 0) return;
  ShareUse& share = shares_[claimant.share];
  --share.idle_clients;
  ++share.busy_clients;
}

void LaneShares::Leave(const Claimant& claimant, bool was_ready, MonotonicTime now) {
  ClientUse& client = clients_[claimant];
  client.left = now;
  if (!was_ready) {
    --client.pending;
  } else if (--client.ready == 0) {
    ShareUse& share = shares_[claimant.share];
    --share.busy_clients;
    ++share.idle_clients;
  }
  if (now >= next_look_) Forget(now);
}

void LaneShares::Stage(const Claimant& claimant, double seconds) {
  ShareUse& share = shares_[claimant.share];
  ++share.staged;
  share.staged_seconds += seconds;
}

void LaneShares::EndStaging(const Claimant& claimant, double seconds) {
  ShareUse& share = shares_[claimant.share];
  share.staged_seconds = --share.staged == 0 ? 0 : share.staged_seconds - seconds;
}

bool LaneShares::MayStage(const Claimant& claimant, double seconds) const {
  const auto own = shares_.find(claimant.share);
  if (own == shares_.end()) return true;
  const ShareUse& use = own->second;
  return use.lanes + use.staged == 0 || use.seconds + use.staged_seconds + seconds <= options_.seconds_max;
}

void LaneShares::Start(const Claimant& claimant, double seconds) {
  ++busy_lanes_;
  ++clients_[claimant].lanes;
  ShareUse& share = shares_[claimant.share];
  ++share.lanes;
  share.seconds += seconds;
}

void LaneShares::End(const Claimant& claimant, double seconds) {
  --busy_lanes_;
  --clients_[claimant].lanes;
  ShareUse& share = shares_[claimant.share];
  share.seconds = --share.lanes == 0 ? 0 : share.seconds - seconds;
}

bool LaneShares::MayStart(const Claimant& claimant, double seconds, MonotonicTime now) {
  const ShareUse& own = shares_[claimant.share];
  if (own.lanes == 0) return true;
  if (own.seconds + seconds > options_.seconds_max) return false;
  if (now >= next_look_) Forget(now);
  const auto idle_shares = std::count_if(shares_.begin(), shares_.end(),
                                         [](const auto& share) { return share.second.busy_clients == 0; });
  const bool leaves_one = clients_[claimant].lanes > 0 && own.idle_clients > 0;
  const auto kept_free = std::min<std::ptrdiff_t>(idle_shares + (leaves_one ? 1 : 0), options_.lanes / 2);
  return options_.lanes - busy_lanes_ > kept_free;
}

void LaneShares::Forget(MonotonicTime now) {
  next_look_ = now + kLookPeriod;
  absl::erase_if(clients_, [&](const auto& entry) {
    const auto& [claimant, client] = entry;
    if (client.pending + client.ready > 0 || now - client.left < kMemory) return false;
    const auto share = shares_.find(claimant.share);
    --share->second.idle_clients;
    if (share->second.idle_clients + share->second.busy_clients == 0) shares_.erase(share);
    return true;
  });
}

}  // namespace warpline
