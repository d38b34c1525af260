// The open connections of the server: how many there may be, and which of them are cut.
#ifndef WARPLINE_SERVER_RPC_CONNECTIONS_H_
#define WARPLINE_SERVER_RPC_CONNECTIONS_H_

#include <sys/socket.h>

#include <atomic>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "server/base/clock.h"
#include "server/base/mutex.h"
#include "server/base/unique_fd.h"
#include "server/observe/limited_log.h"
#include "server/rpc/reset_budget.h"

namespace warpline {

// The name that gRPC gives the other end of a connection ("ipv4:127.0.0.1:40000", "ipv6:%5B::1%5D:40000"). It
// is empty for a unix socket, whose clients have no name by which they could be told apart.
std::string PeerName(const sockaddr_storage& address);

// Each connection is held by a duplicate of its descriptor, because gRPC owns and closes the descriptor
// itself. Connections are ended with shutdown(2) only, which gRPC sees as the loss of the connection.
// Thread-safe.
class Connections {
 public:
  struct Options {
    int max_connections = 1000;
    ResetBudget::Options resets;
  };
  explicit Connections(const Options& options) : options_(options) {}

  // Returns the duplicate's number, under which the connection is known here until Remove; or -1 with errno
  // EUSERS at the bound, or with what dup(2) said.
  int Add(int fd, const sockaddr_storage& peer);
  // Closes the duplicate. Whoever polls it must have let go of it.
  void Remove(int duplicate);
  // Waits until there are none, for so long at most, or for `longest_unsent` while there are some with bytes
  // that their clients have not acknowledged. Returns whether it came to that.
  bool AwaitNone(absl::Duration longest, absl::Duration longest_unsent) const;
  // Cuts those that were ended on our side at least so long ago, by their state at the calls of this, and
  // that the client has not ended although it has received everything. Not on unix sockets.
  void CutHalfClosed(absl::Duration longest);
  // Ends every connection behind what was written to it, and waits until all clients have closed theirs, or
  // for so long. Nobody may add or remove one meanwhile.
  void EndAll(absl::Duration longest);
  int size() const;
  int max_connections() const { return options_.max_connections; }

  // The first counts calls of a connection that were answered, the second a call that its client cancelled
  // before. `identity` is the same for all calls of a connection, and no two open connections have the same
  // one.
  void CountAnswered(const void* identity, int calls);
  void CountReset(const void* identity);

  // True while a connection has spent its budget and is to be cut as soon as it is known by name: gRPC tells
  // the name of a call's peer when the call comes, but not any more when it has been reset, and asking for it
  // each time would cost more than it is worth. Then LearnPeer is called with each call that comes.
  // Connections on unix sockets are never cut.
  bool wants_peers() const { return wants_peers_.load(std::memory_order_relaxed); }
  void LearnPeer(const void* identity, const std::string& peer);

 private:
  struct Connection {
    UniqueFd duplicate;
    std::string peer;
    MonotonicTime half_closed_since = kNever;
  };
  bool HasUnsent() const;

  // A connection that has reset a call.
  struct Resetter {
    ResetBudget budget;
    bool spent = false;
  };

  const Options options_;
  mutable Mutex mutex_;
  absl::flat_hash_map<int, Connection> connections_ ABSL_GUARDED_BY(mutex_);  // by duplicate
  absl::flat_hash_map<std::string, int> duplicates_ ABSL_GUARDED_BY(mutex_);  // by peer
  absl::Time wants_peers_until_ ABSL_GUARDED_BY(mutex_);
  std::atomic<bool> wants_peers_ = false;
  absl::flat_hash_map<const void*, Resetter> resetters_ ABSL_GUARDED_BY(mutex_);  // by identity
  LimitedLog log_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_CONNECTIONS_H_
