// The peer of a connection: the host or user at its other end, as far as the network can tell.
#ifndef WARPLINE_SERVER_RPC_PEER_H_
#define WARPLINE_SERVER_RPC_PEER_H_

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <utility>

#include "server/base/owner.h"

namespace warpline {

// A host or a user. Without identities, shares and budgets belong to peers. An IPv6 peer is a /64 network,
// because one customer usually gets one: its hosts can use any address in it.
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

// Returns the peer with this address. `fd` is the server's end of the connection. A unix socket has no
// address; its peer is the user who connected it.
Peer PeerOf(const sockaddr_storage& address, int fd);

// "10.0.0.7", "2001:db8:1:2::/64" or "uid 1000".
std::string ToString(const Peer& peer);

// The name of one connection in logs: "ipv4:127.0.0.1:40000", "ipv6:%5B::1%5D:40000" or "unix:".
std::string ConnectionName(const sockaddr_storage& address);

// Returns the number of the peer among owners. No identity has this number.
OwnerId ShareOf(const Peer& peer);

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_PEER_H_
