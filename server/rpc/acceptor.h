// Takes connections and hands them on, whatever happens to the descriptors of the process.
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

// Listens on addresses and takes their connections on a thread of its own, which also watches them for their
// end. A connection that Connections does not take, or for which no descriptor is left, is closed at once,
// with a warning at most once a second; the listener itself goes on. gRPC 1.51's own stops for good when the
// process has no descriptor left (CVE-2023-4785), and bounds nothing.
class Acceptor {
 public:
  struct Options {
    std::vector<std::string> listen;  // see Listener::Open
    // Likewise, for proxies alone: each connection must begin with a header of PROXY protocol version 2,
    // which names the client. It has five seconds for that.
    std::vector<std::string> proxy_listen;
    // A TCP connection is closed whose data stays unacknowledged for so long (TCP_USER_TIMEOUT, in units of 1
    // ms), or whose client's host does not answer for so long while there is no data (TCP keepalive, in units
    // of 1 s).
    absl::Duration user_timeout = absl::Seconds(30);
    // Connections end gently (gentle_close.h) at any time. Those whose clients do not end their side for
    // user_timeout are cut.
    bool closes_gently = false;
  };
  // The kind of a connection, by the address of its socket.
  enum class Kind { kUnix, kNetwork };
  // Owns a connected socket from here on: non-blocking, close-on-exec, without delay on TCP. `number` is that
  // of the Connection. Called on the acceptor's thread.
  using Deliver = std::function<void(int fd, Kind kind, std::uint64_t number)>;

  // Listens, so that clients can connect; they wait until Start. `connections` outlives the acceptor.
  static absl::StatusOr<std::unique_ptr<Acceptor>> Listen(const Options& options, Connections& connections);
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  // The addresses in use, with the ports that were picked.
  std::vector<std::string> addresses() const { return AddressesOf(listeners_); }
  std::vector<std::string> proxy_addresses() const { return AddressesOf(proxy_listeners_); }
  // Begins to accept. May be called once.
  void Start(Deliver deliver);
  // Delivers the connections that wait to be accepted and closes the listening sockets, so that further
  // clients are refused and another process may listen. Connections are still watched for their end.
  void StopListening();
  // Also ends the thread; after this, `deliver` is not called again. Connections that were delivered stay.
  void Stop();

 private:
  Acceptor(const Options& options, Connections& connections);
  // A connection of a proxy that has not said yet for whom it is.
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
  // `source`: who connects, if that is not whoever has the address of the socket.
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

  const Options options_;
  Connections& connections_;
  std::vector<Listener> listeners_, proxy_listeners_;
  absl::flat_hash_map<int, Nameless> nameless_;  // by socket
  // Sockets that made room for others. They stay open until all events at hand are handled, as one of these
  // may name them.
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
