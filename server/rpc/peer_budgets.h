// The budgets of each peer: how much it may ask of the server before it is slowed down.
#ifndef WARPLINE_SERVER_RPC_PEER_BUDGETS_H_
#define WARPLINE_SERVER_RPC_PEER_BUDGETS_H_

#include <cstddef>

#include "absl/container/flat_hash_map.h"
#include "server/base/clock.h"
#include "server/base/token_bucket.h"
#include "server/rpc/peer.h"

namespace warpline {

// Budgets of new connections and of futile calls. A call is futile if it had a wrong token, or was cancelled
// before the server could answer it, by its client or by the client's deadline: it costs the server work and
// the client nothing. The budgets belong to the peer, so closing a connection and opening a new one gains
// nothing.
//
// A peer may make 1000 futile calls at once and 100 more per second, plus one for each answered call. So a
// client may cancel every second call. A peer in debt gets no new connection until time has paid the debt,
// which takes ten seconds at most.
//
// Peers without connections and with full budgets are forgotten. Not thread-safe.
class PeerBudgets {
 public:
  struct Options {
    TokenBucket::Options futile_calls{.capacity = 1000, .per_second = 100, .debt_max = 1000};
    TokenBucket::Options connections{.capacity = 1000, .per_second = 300, .debt_max = 0};
    // Limits the memory that clients with many addresses can use: some 150 bytes per peer.
    std::size_t max_peers = 16384;
  };
  enum class Verdict { kTaken, kTooManyConnections, kInDebt };

  explicit PeerBudgets(const Options& options) : options_(options) {}

  // Returns whether the peer may open a connection now. If kTaken, the connection counts until
  // RemoveConnection.
  Verdict AddConnection(const Peer& peer, MonotonicTime now);
  void RemoveConnection(const Peer& peer);
  void CountAnswered(const Peer& peer, int calls);
  // Returns false if the peer is in debt.
  bool CountFutile(const Peer& peer, MonotonicTime now);

  // Returns the number of open connections of the peer, and the peer with the most.
  int connections(const Peer& peer) const;
  Peer largest() const;
  std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    TokenBucket futile_calls, new_connections;
    int connections = 0;
  };
  Entry& EntryOf(const Peer& peer, MonotonicTime now);
  void Forget(MonotonicTime now);

  const Options options_;
  absl::flat_hash_map<Peer, Entry> entries_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_PEER_BUDGETS_H_
