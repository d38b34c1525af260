#include "server/rpc/peer.h"

#include <arpa/inet.h>
#include <endian.h>
#include <netinet/in.h>

#include <cstring>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"

namespace warpline {
namespace {

constexpr std::uint64_t kNobody = 65534;  // the user "nobody" of Linux: the kernel does not know the user

// Identities have the highest bit set; see Identities::NumberOf.
constexpr OwnerId kIdentityBit = OwnerId{1} << 63;

// An IPv4 address in an IPv6 socket counts as IPv4.
struct Address {
  bool is_v4 = false;
  in_addr v4{};
  in6_addr v6{};
  std::uint32_t scope = 0;
  in_port_t port = 0;
};

Address AddressOf(const sockaddr_storage& storage) {
  Address address;
  if (storage.ss_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, &storage, sizeof(v4));
    address.is_v4 = true;
    address.v4 = v4.sin_addr;
    address.port = v4.sin_port;
    return address;
  }
  sockaddr_in6 v6;
  std::memcpy(&v6, &storage, sizeof(v6));
  address.v6 = v6.sin6_addr;
  address.scope = v6.sin6_scope_id;
  address.port = v6.sin6_port;
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    address.is_v4 = true;
    std::memcpy(&address.v4, &v6.sin6_addr.s6_addr[12], sizeof(address.v4));
  }
  return address;
}

std::string TextOf(int family, const void* address) {
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(family, address, text, sizeof(text));
  return text;
}

}  // namespace

Peer PeerOf(const sockaddr_storage& storage, int fd) {
  if (storage.ss_family != AF_INET && storage.ss_family != AF_INET6) {
    ucred user{};
    socklen_t size = sizeof(user);
    const bool known = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &user, &size) == 0;
    return {.kind = Peer::Kind::kUser, .number = known ? user.uid : kNobody};
  }
  const Address address = AddressOf(storage);
  if (address.is_v4) return {.kind = Peer::Kind::kIpv4, .number = ntohl(address.v4.s_addr)};
  std::uint64_t network = 0;
  std::memcpy(&network, address.v6.s6_addr, sizeof(network));
  return {.kind = Peer::Kind::kIpv6, .number = be64toh(network)};
}

std::string ToString(const Peer& peer) {
  switch (peer.kind) {
    case Peer::Kind::kIpv4: {
      const in_addr address{.s_addr = htonl(static_cast<std::uint32_t>(peer.number))};
      return TextOf(AF_INET, &address);
    }
    case Peer::Kind::kIpv6: {
      in6_addr address{};
      const std::uint64_t network = htobe64(peer.number);
      std::memcpy(address.s6_addr, &network, sizeof(network));
      return absl::StrCat(TextOf(AF_INET6, &address), "/64");
    }
    case Peer::Kind::kUser:
      return absl::StrCat("uid ", peer.number);
  }
  return "";
}

std::string ConnectionName(const sockaddr_storage& storage) {
  if (storage.ss_family != AF_INET && storage.ss_family != AF_INET6) return "unix:";
  const Address address = AddressOf(storage);
  if (address.is_v4) return absl::StrCat("ipv4:", TextOf(AF_INET, &address.v4), ":", ntohs(address.port));
  const std::string scope = address.scope != 0 ? absl::StrCat("%25", address.scope) : "";
  return absl::StrCat("ipv6:%5B", TextOf(AF_INET6, &address.v6), scope, "%5D:", ntohs(address.port));
}

OwnerId ShareOf(const Peer& peer) {
  // Abseil's hash has a different seed in each process, so nobody can search for an address with the number
  // of another.
  return absl::HashOf(peer) & ~kIdentityBit;
}

}  // namespace warpline
