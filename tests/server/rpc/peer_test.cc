#include "server/rpc/peer.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/base/unique_fd.h"
#include "server/rpc/peer_naming.h"
#include "tests/testing/addresses.h"

namespace warpline {
namespace {

Peer V4Peer(const char* host) { return PeerOf(V4(host, 1), -1); }
Peer V6Peer(const char* host) { return PeerOf(V6(host, 1), -1); }

TEST(PeerTest, AnIpv4AddressIsOnePeerWhateverThePortAndTheSocket) {
  EXPECT_EQ(PeerOf(V4("10.1.2.3", 1), -1), PeerOf(V4("10.1.2.3", 2), -1));
  EXPECT_EQ(V4Peer("10.1.2.3"), V6Peer("::ffff:10.1.2.3"));
  EXPECT_NE(V4Peer("10.1.2.3"), V4Peer("10.1.2.4"));
}

TEST(PeerTest, AnIpv6NetworkOf64BitsIsOnePeer) {
  EXPECT_EQ(V6Peer("2001:db8:1:2::1"), V6Peer("2001:db8:1:2:ffff::9"));
  EXPECT_NE(V6Peer("2001:db8:1:2::1"), V6Peer("2001:db8:1:3::1"));
}

TEST(PeerTest, TheUserOfAUnixSocketIsOnePeer) {
  int fds[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
  const UniqueFd server(fds[0]), client(fds[1]);
  sockaddr_storage address{};
  address.ss_family = AF_UNIX;
  const Peer peer = PeerOf(address, server.get());
  EXPECT_EQ(peer.kind, Peer::Kind::kUser);
  EXPECT_EQ(peer.number, getuid());
}

TEST(PeerTest, HasAText) {
  EXPECT_EQ(ToString(V4Peer("10.1.2.3")), "10.1.2.3");
  EXPECT_EQ(ToString(V6Peer("2001:db8:1:2::1")), "2001:db8:1:2::/64");
  EXPECT_EQ(ToString(Peer{.kind = Peer::Kind::kUser, .number = 7}), "uid 7");
}

TEST(PeerTest, ItsShareIsNoIdentitys) {
  EXPECT_EQ(ShareOf(V4Peer("10.1.2.3")), ShareOf(V4Peer("10.1.2.3")));
  EXPECT_NE(ShareOf(V4Peer("10.1.2.3")), ShareOf(V4Peer("10.1.2.4")));
  for (std::uint64_t user = 0; user < 1000; ++user) {
    EXPECT_EQ(ShareOf({.kind = Peer::Kind::kUser, .number = user}) >> 63, 0u);
  }
}

TEST(ConnectionNameTest, IsTheOneThatGrpcUses) {
  EXPECT_EQ(ConnectionName(V4("127.0.0.1", 40000)), "ipv4:127.0.0.1:40000");
  EXPECT_EQ(ConnectionName(V6("::1", 40000)), "ipv6:%5B::1%5D:40000");
  EXPECT_EQ(ConnectionName(V6("::ffff:10.1.2.3", 7)), "ipv4:10.1.2.3:7");
  sockaddr_storage path{};
  path.ss_family = AF_UNIX;
  EXPECT_EQ(ConnectionName(path), "unix:");
}

TEST(PeerNamingTest, OnlyOurOwnNamesHaveNumbers) {
  EXPECT_EQ(NumberInPeerName("unix-abstract:warpline-17"), 17u);
  for (const char* other : {"", "unknown", "unix:", "ipv4:127.0.0.1:17", "unix-abstract:warpline-",
                            "unix-abstract:warpline-17x", "unix-abstract:x-17"}) {
    EXPECT_FALSE(NumberInPeerName(other).has_value()) << other;
  }
}

}  // namespace
}  // namespace warpline
