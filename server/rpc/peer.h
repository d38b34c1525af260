// The peer of a connection: who is at its other end, as far as the network can tell.
#ifndef WARPLINE_SERVER_RPC_PEER_H_
#define WARPLINE_SERVER_RPC_PEER_H_

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <utility>

#include "server/base/owner.h"

namespace warpline {

// A host or a user, and the unit that shares and budgets belong to where clients have no identity. An IPv6
// peer is a /64 network, because that is what one customer usually gets: its hosts can take any address of
// it.
struct Peer {
  enum class Kind : std::uint8_t { kIpv4, kIpv6, kUser };
  Kind kind = Kind::kUser;
  // The IPv4 address or the first 64 bits of the IPv6 address in host byte order, or a user id.
  std::uint64_t number = 0;

  friend bool operator==(const Peer&, const Peer&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const Peer& peer) {
    return H::combine(std::move(h), peer.kind, peer.number);
  }
};

// The peer with this address. `fd` is the server's end of the connection; a unix socket has no address, and
// its peer is the user who connected it.
Peer PeerOf(const sockaddr_storage& address, int fd);

// "10.0.0.7", "2001:db8:1:2::/64" or "uid 1000".
std::string ToString(const Peer& peer);

// The name of one connection in logs: "ipv4:127.0.0.1:40000", "ipv6:%5B::1%5D:40000" or "unix:".
std::string ConnectionName(const sockaddr_storage& address);

// The number of the peer among owners. No identity has the same one.
OwnerId ShareOf(const Peer& peer);

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_PEER_H_
