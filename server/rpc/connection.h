// One connection of a client.
#ifndef WARPLINE_SERVER_RPC_CONNECTION_H_
#define WARPLINE_SERVER_RPC_CONNECTION_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "server/base/clock.h"
#include "server/rpc/peer.h"
#include "server/rpc/read_rounds.h"

namespace warpline {

// Shared by the registry of connections and by the calls of the connection, which may outlive its socket.
// Thread-safe.
class Connection {
 public:
  // `fd` is the descriptor that gRPC reads.
  Connection(std::uint64_t number, int fd, const Peer& peer, std::string name)
      : number_(number), fd_(fd), peer_(peer), name_(std::move(name)) {}

  // Unique in this process. Never 0.
  std::uint64_t number() const { return number_; }
  const Peer& peer() const { return peer_; }
  // For logs; see ConnectionName.
  const std::string& name() const { return name_; }

  // True once the socket is closed, or about to be: then no answer reaches the client.
  bool has_ended() const { return ended_.load(std::memory_order_relaxed); }
  void SetEnded() { ended_.store(true, std::memory_order_relaxed); }

  // Counts a futile call (see PeerBudgets). Returns the number of futile calls so far, including this one.
  int CountFutile() { return futile_.fetch_add(1, std::memory_order_relaxed) + 1; }

  // True once a call of the connection has been answered.
  bool has_answered() const { return answered_.load(std::memory_order_relaxed); }
  void SetAnswered() {
    if (!has_answered()) answered_.store(true, std::memory_order_relaxed);
  }

  // AddCall: a call begins. RemoveCall: a call ends at `now`.
  void AddCall() { calls_.fetch_add(1, std::memory_order_relaxed); }
  void RemoveCall(MonotonicTime now) {
    idle_since_.store(now, std::memory_order_relaxed);
    calls_.fetch_sub(1, std::memory_order_relaxed);
  }
  // Returns the time since when it has had no call; kNever if it has one.
  MonotonicTime idle_since() const {
    return calls_.load(std::memory_order_relaxed) == 0 ? idle_since_.load(std::memory_order_relaxed) : kNever;
  }

  // Returns the client that its calls belong to (Claimant::client): the name that the first call gives, or
  // the connection's number if that call gives 0. Later calls do not change it, so that a client cannot get
  // more shares than it has connections.
  std::uint64_t ClientOf(std::uint64_t said) {
    std::uint64_t known = client_.load(std::memory_order_relaxed);
    if (known != 0) return known;  // true for all calls except the first
    if (said == 0) said = number_;
    return client_.compare_exchange_strong(known, said, std::memory_order_relaxed) ? said : known;
  }

  // Bytes received on its socket. Only differences are meaningful.
  std::uint64_t bytes_received() const { return BytesReceived(fd_); }
  // Unary calls whose messages have not arrived yet.
  int uploads() const { return uploads_.load(std::memory_order_relaxed); }
  void AddUpload(int count) { uploads_.fetch_add(count, std::memory_order_relaxed); }

 private:
  const std::uint64_t number_;
  const int fd_;
  const Peer peer_;
  const std::string name_;
  std::atomic<bool> ended_ = false;
  std::atomic<bool> answered_ = false;
  std::atomic<int> futile_ = 0;
  std::atomic<std::uint64_t> client_ = 0;  // 0: no call has come yet
  std::atomic<int> uploads_ = 0;
  std::atomic<int> calls_ = 0;
  std::atomic<MonotonicTime> idle_since_ = MonotonicClock::now();
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_CONNECTION_H_
