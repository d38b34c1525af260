// Accepts connections and hands them on, even if the process runs out of descriptors.
#ifndef WARPLINE_SERVER_RPC_ACCEPTOR_H_
#define WARPLINE_SERVER_RPC_ACCEPTOR_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/base/clock.h"
#include "server/base/listener.h"
#include "server/base/unique_fd.h"
#include "server/rpc/connections.h"
#include "server/rpc/proxy_header.h"

namespace warpline {

// Listens on addresses and accepts their connections on its own thread, which also watches for the end of
// each connection. A connection that Connections refuses, or for which there is no descriptor, is closed at
// once, with a warning at most once a second; the listener keeps working. The listener of gRPC 1.51 has no
// limits, and stops for good when the process runs out of descriptors (CVE-2023-4785).
class Acceptor {
 public:
  struct Options {
    std::vector<Listener> listen;
    // The same, for proxies only: each connection must begin with a header of PROXY protocol version 2, which
    // names the client, within five seconds.
    std::vector<Listener> proxy_listen;
    // A TCP connection is closed if sent data stays unacknowledged for this long (TCP_USER_TIMEOUT, in units
    // of 1 ms). Without data it is closed if the client's host does not answer probes for this long (TCP
    // keepalive, in units of 1 s).
    absl::Duration user_timeout = absl::Seconds(30);
    // Connections may end gently (gentle_close.h) at any time. If the client does not end its side within
    // user_timeout, the connection is cut.
    bool closes_gently = false;
  };
  // The kind of a connection, by the address of its socket.
  enum class Kind { kUnix, kNetwork };
  // Takes ownership of a connected socket: non-blocking, close-on-exec, TCP without delay. `number` is that
  // of the Connection. Called on the acceptor's thread.
  using Deliver = std::function<void(int fd, Kind kind, std::uint64_t number)>;

  // Listens, so that clients can connect. Their connections are accepted after Start. `connections` outlives
  // the acceptor.
  static absl::StatusOr<std::unique_ptr<Acceptor>> Listen(Options options, Connections& connections);
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  // The addresses in use, with the ports that the system chose.
  std::vector<std::string> addresses() const { return AddressesOf(options_.listen); }
  std::vector<std::string> proxy_addresses() const { return AddressesOf(options_.proxy_listen); }
  // Starts to accept connections. May be called once.
  void Start(Deliver deliver);
  // Delivers the connections that wait to be accepted and closes the listening sockets, so that further
  // clients are refused and another process may listen. Connections are still watched for their end.
  void StopListening();
  // Like StopListening, and also ends the thread. After this, `deliver` is not called again. Delivered
  // connections stay open.
  void Stop();

 private:
  Acceptor(Options options, Connections& connections);
  // A connection of a proxy that has not named its client yet.
  struct Nameless {
    UniqueFd socket;
    sockaddr_storage address{};
    ProxyHeader header;
    MonotonicTime deadline;
  };
  static std::vector<std::string> AddressesOf(const std::vector<Listener>& listeners);
  absl::Status Prepare();
  // Returns false and sets errno if the kernel refuses.
  bool Watch(int fd, std::uint32_t events) const;
  void Loop();
  // Returns whether there may be more to accept.
  bool AcceptFrom(int listening);
  // `source`: the client's address, if it is not the address of the socket.
  void Take(UniqueFd socket, const sockaddr_storage& address, const std::optional<sockaddr_storage>& source);
  void AwaitHeader(UniqueFd socket, const sockaddr_storage& address);
  void ReadHeader(int socket);
  void CloseNameless(MonotonicTime now);
  // Calls visit(fd) for each listening socket.
  void VisitListening(absl::FunctionRef<void(int)> visit) const;
  void OutOfDescriptors(int listening);
  void WarnRefused(std::string_view why);
  static bool Has(const std::vector<Listener>& listeners, int fd);
  void Listening(bool on);
  void CloseListeners();
  void WakeUp();

  Options options_;
  Connections& connections_;
  absl::flat_hash_map<int, Nameless> nameless_;  // by socket
  // Sockets that were closed to make room for others. They stay open until all current events are handled,
  // because one of the events may be for them.
  std::vector<UniqueFd> evicted_;
  UniqueFd epoll_;
  UniqueFd wake_;
  UniqueFd reserve_;  // closed to make room for one connection, which is then refused
  Deliver deliver_;
  std::atomic<bool> stopping_ = false;
  std::atomic<bool> closing_listeners_ = false;
  std::promise<void> listeners_closed_;
  MonotonicTime next_look_;
  std::optional<MonotonicTime> paused_until_;
  MonotonicTime next_warning_;
  int refused_ = 0;  // since the last warning
  std::thread thread_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_ACCEPTOR_H_
