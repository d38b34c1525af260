// The open connections of the server: how many there may be, whose they are, and which of them are cut.
#ifndef WARPLINE_SERVER_RPC_CONNECTIONS_H_
#define WARPLINE_SERVER_RPC_CONNECTIONS_H_

#include <sys/socket.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/base/clock.h"
#include "server/base/mutex.h"
#include "server/base/unique_fd.h"
#include "server/observe/limited_log.h"
#include "server/rpc/connection.h"
#include "server/rpc/peer_budgets.h"

namespace warpline {

// Holds each connection by a duplicate of its descriptor, because gRPC owns and closes the descriptor itself.
// Connections are ended with shutdown(2) or a reset only, which gRPC sees as the loss of the connection.
// Thread-safe.
class Connections {
 public:
  struct Options {
    int max_connections = 1000;
    PeerBudgets::Options budgets;
  };
  explicit Connections(const Options& options) : options_(options), budgets_(options.budgets) {}

  // A connection that was added.
  struct Added {
    int duplicate = -1;  // the descriptor under which it is known here until Remove
    std::uint64_t number = 0;
  };
  // A peer may have three quarters of the connections that the other peers leave. Where there is no room, an
  // idle connection of the peer that has the most goes: one that never had a call, else the one that has had
  // none for longest. RESOURCE_EXHAUSTED if there is none, or if the peer has spent a budget; UNAVAILABLE
  // with what dup(2) said.
  absl::StatusOr<Added> Add(int fd, const Peer& peer, std::string name);
  // Closes the duplicate. Whoever polls it must have let go of it.
  void Remove(int duplicate);

  // The facts that the first call of a connection tells.
  struct FirstCall {
    std::shared_ptr<const void> context;  // keeps gRPC's security context
    std::string peer_name;                // what grpc::ServerContext::peer() says
  };
  // The connection that a call came by. `context` is gRPC's security context of the call. Each connection has
  // one of its own, which is kept until Remove, so that no other connection gets the same address before.
  // `first_call` is called if the context is not known yet. Never null: calls of a connection that is long
  // gone get one that has ended.
  std::shared_ptr<Connection> Find(const void* context, absl::FunctionRef<FirstCall()> first_call);

  // Records that `calls` calls of the connection were answered.
  void CountAnswered(Connection& connection, int calls);
  // A call was futile; see PeerBudgets. While its peer is in debt, the connection is cut unless this is one
  // of its first futile calls, and so is every connection of this peer that has not had an answer yet.
  void CountFutile(Connection& connection);

  // Waits until there are none, for so long at most, or for `longest_unsent` while there are some with bytes
  // that their clients have not acknowledged. Returns whether it came to that.
  bool AwaitNone(absl::Duration longest, absl::Duration longest_unsent) const;
  // Cuts TCP connections that were ended on our side at least so long ago, by their state at the calls of
  // this, and that the client has not ended although it has received everything.
  void CutHalfClosed(absl::Duration longest);
  // Ends every connection behind what was written to it, and waits until all clients have closed theirs, or
  // for so long. Nobody may add or remove one meanwhile.
  void EndAll(absl::Duration longest);
  int size() const;
  int max_connections() const { return options_.max_connections; }

 private:
  struct Entry {
    std::shared_ptr<Connection> connection;
    UniqueFd duplicate;
    std::shared_ptr<const void> context;  // null before the first call
    MonotonicTime half_closed_since = kNever;
  };
  bool HasUnsent() const;
  void Cut(const Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Makes room for one more connection of the peer. Returns false if that is impossible.
  bool MakeRoom(const Peer& peer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Cuts the connection of the peer that has had no call for longest. Returns false if all have some.
  bool CutIdle(const Peer& peer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  mutable Mutex mutex_;
  std::uint64_t last_number_ ABSL_GUARDED_BY(mutex_) = 0;
  PeerBudgets budgets_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<int, Entry> entries_ ABSL_GUARDED_BY(mutex_);  // by duplicate
  int cut_ ABSL_GUARDED_BY(mutex_) = 0;                              // of these, to be removed soon
  absl::flat_hash_map<const void*, std::shared_ptr<Connection>> by_context_ ABSL_GUARDED_BY(mutex_);
  // Connections by number: the open ones, and those that ended last, whose calls may still come.
  struct Known {
    std::shared_ptr<Connection> connection;
    int duplicate = -1;  // -1: its socket is closed
  };
  absl::flat_hash_map<std::uint64_t, Known> by_number_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::uint64_t> ended_ ABSL_GUARDED_BY(mutex_);
  LimitedLog log_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_CONNECTIONS_H_
