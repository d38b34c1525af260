#include "server/rpc/peer_budgets.h"

#include <algorithm>

namespace warpline {

PeerBudgets::Entry& PeerBudgets::EntryOf(const Peer& peer, MonotonicTime now) {
  const auto found = entries_.find(peer);
  if (found != entries_.end()) return found->second;
  if (entries_.size() >= options_.max_peers) Forget(now);
  const Entry fresh{.futile_calls = TokenBucket(options_.futile_calls, now),
                    .new_connections = TokenBucket(options_.connections, now)};
  return entries_.emplace(peer, fresh).first->second;
}

// First removes entries that hold no information. If the map is still full, all peers are in debt or have
// connections: then the debts of peers without connections are dropped.
void PeerBudgets::Forget(MonotonicTime now) {
  absl::erase_if(entries_, [now](auto& entry) {
    return entry.second.connections == 0 && entry.second.futile_calls.is_full(now) &&
           entry.second.new_connections.is_full(now);
  });
  if (entries_.size() < options_.max_peers) return;
  absl::erase_if(entries_, [](const auto& entry) { return entry.second.connections == 0; });
}

PeerBudgets::Verdict PeerBudgets::AddConnection(const Peer& peer, MonotonicTime now) {
  Entry& entry = EntryOf(peer, now);
  if (!entry.futile_calls.has_token(now)) return Verdict::kInDebt;
  if (!entry.new_connections.Take(now)) return Verdict::kTooManyConnections;
  ++entry.connections;
  return Verdict::kTaken;
}

void PeerBudgets::RemoveConnection(const Peer& peer) {
  const auto found = entries_.find(peer);
  if (found != entries_.end()) --found->second.connections;
}

void PeerBudgets::CountAnswered(const Peer& peer, int calls) {
  const auto found = entries_.find(peer);
  if (found != entries_.end()) found->second.futile_calls.Put(calls);
}

bool PeerBudgets::CountFutile(const Peer& peer, MonotonicTime now) {
  return EntryOf(peer, now).futile_calls.Take(now);
}

Peer PeerBudgets::largest() const {
  const auto largest = std::max_element(entries_.begin(), entries_.end(), [](const auto& a, const auto& b) {
    return a.second.connections < b.second.connections;
  });
  return largest != entries_.end() ? largest->first : Peer();
}

int PeerBudgets::connections(const Peer& peer) const {
  const auto found = entries_.find(peer);
  return found != entries_.end() ? found->second.connections : 0;
}

}  // namespace warpline
