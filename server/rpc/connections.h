// The open connections of the server: how many there may be, which peers they belong to, and which are cut.
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

// Holds a duplicate of each connection's descriptor, because gRPC owns and closes the descriptor itself.
// Connections are ended only with shutdown(2) or a reset, which gRPC sees as the loss of the connection.
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
    int duplicate = -1;  // the descriptor that identifies the connection here until Remove
    std::uint64_t number = 0;
  };
  // Adds a connection. A peer may have three quarters of the connections that the other peers leave. If there
  // is no room, an idle connection of the peer with the most connections is cut: first one that never had a
  // call, otherwise the one that has been idle longest. RESOURCE_EXHAUSTED if there is none, or if the peer
  // has used up a budget; UNAVAILABLE with the error of dup(2).
  absl::StatusOr<Added> Add(int fd, const Peer& peer, std::string name);
  // Closes the duplicate. The caller must have stopped polling it.
  void Remove(int duplicate);

  // The facts that the first call of a connection tells about the connection.
  struct FirstCall {
    std::shared_ptr<const void> context;  // keeps gRPC's security context alive
    std::string peer_name;                // result of grpc::ServerContext::peer()
  };
  // Returns the connection of a call. `context` is gRPC's security context of the call. Each connection has
  // its own, which is kept until Remove, so that no other connection can get the same address before.
  // `first_call` is called if the context is unknown. Never null: a call of a connection that ended long ago
  // gets one that is marked as ended.
  std::shared_ptr<Connection> Find(const void* context, absl::FunctionRef<FirstCall()> first_call);

  // Records that `calls` calls of the connection were answered.
  void CountAnswered(Connection& connection, int calls);
  // Counts a futile call; see PeerBudgets. While its peer is in debt, the connection is cut, unless this is
  // one of its first futile calls and it has had an answer. Then all connections of this peer without an
  // answer are cut too.
  void CountFutile(Connection& connection);

  // Waits until there are no connections: at most `longest`, or at most `longest_unsent` while some have
  // bytes that their clients have not acknowledged. Returns whether there are none.
  bool AwaitNone(absl::Duration longest, absl::Duration longest_unsent) const;
  // Cuts TCP connections whose clients have received everything but have not ended their side. Our side must
  // have ended at least `longest` ago, as seen by earlier calls of this function.
  void CutHalfClosed(absl::Duration longest);
  // Ends every connection after what was written to it. Waits until all clients have closed theirs, at most
  // `longest`. No connection may be added or removed meanwhile.
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
  // Cuts the connection of the peer that has been idle longest. Returns false if all have calls.
  bool CutIdle(const Peer& peer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  mutable Mutex mutex_;
  std::uint64_t last_number_ ABSL_GUARDED_BY(mutex_) = 0;
  PeerBudgets budgets_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<int, Entry> entries_ ABSL_GUARDED_BY(mutex_);  // by duplicate
  int cut_ ABSL_GUARDED_BY(mutex_) = 0;  // entries that are cut and will be removed soon
  absl::flat_hash_map<const void*, std::shared_ptr<Connection>> by_context_ ABSL_GUARDED_BY(mutex_);
  // Connections by number: the open ones, and those that ended recently, of which calls may still arrive.
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
