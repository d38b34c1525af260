#include "server/rpc/connections.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

#include "absl/time/clock.h"

namespace warpline {
namespace {

sockaddr_storage V4(const char* host, std::uint16_t port) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  inet_pton(AF_INET, host, &v4.sin_addr);
  sockaddr_storage address{};
  std::memcpy(&address, &v4, sizeof(v4));
  return address;
}

sockaddr_storage V6(const char* host, std::uint16_t port) {
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  inet_pton(AF_INET6, host, &v6.sin6_addr);
  sockaddr_storage address{};
  std::memcpy(&address, &v6, sizeof(v6));
  return address;
}

struct Pair {
  Pair() {
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0) {
      server.Reset(fds[0]);
      client.Reset(fds[1]);
    }
  }
  bool Closed() const {
    char byte = 0;
    return recv(client.get(), &byte, 1, MSG_DONTWAIT) == 0;
  }
  UniqueFd server, client;
};

// The same over TCP, whose states a kernel tells of.
struct TcpPair {
  TcpPair() {
    const UniqueFd listening(socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_storage name = V4("127.0.0.1", 0);
    socklen_t size = sizeof(sockaddr_in);
    bind(listening.get(), reinterpret_cast<sockaddr*>(&name), size);
    listen(listening.get(), 1);
    getsockname(listening.get(), reinterpret_cast<sockaddr*>(&name), &size);
    client.Reset(socket(AF_INET, SOCK_STREAM, 0));
    connect(client.get(), reinterpret_cast<sockaddr*>(&name), size);
    server.Reset(accept(listening.get(), nullptr, nullptr));
  }
  UniqueFd server, client;
};

bool IsCut(int fd) {
  pollfd socket{.fd = fd, .events = 0, .revents = 0};
  return poll(&socket, 1, 0) == 1 && (socket.revents & POLLHUP) != 0;
}

TEST(PeerNameTest, IsTheOneThatGrpcUses) {
  EXPECT_EQ(PeerName(V4("127.0.0.1", 40000)), "ipv4:127.0.0.1:40000");
  EXPECT_EQ(PeerName(V6("::1", 40000)), "ipv6:%5B::1%5D:40000");
  EXPECT_EQ(PeerName(V6("::ffff:10.1.2.3", 7)), "ipv4:10.1.2.3:7");
  sockaddr_storage path{};
  path.ss_family = AF_UNIX;
  EXPECT_EQ(PeerName(path), "");
}

TEST(ConnectionsTest, AreBounded) {
  Connections connections({.max_connections = 1, .resets = {}});
  Pair first, second;
  const int held = connections.Add(first.server.get(), V4("127.0.0.1", 1));
  ASSERT_GE(held, 0);
  EXPECT_EQ(connections.Add(second.server.get(), V4("127.0.0.1", 2)), -1);
  EXPECT_EQ(errno, EUSERS);
  connections.Remove(held);
  EXPECT_EQ(connections.size(), 0);
  EXPECT_GE(connections.Add(second.server.get(), V4("127.0.0.1", 2)), 0);
}

// Stand for the security contexts of two connections.
const int kOne = 1, kTwo = 2;

TEST(ConnectionsTest, OnlyTheOneThatSpendsItsBudgetIsCut) {
  Connections connections({.max_connections = 9, .resets = {.calls = 2, .regained_per_second = 0}});
  Pair abuser, other;
  connections.Add(abuser.server.get(), V4("127.0.0.1", 1));
  connections.Add(other.server.get(), V4("127.0.0.1", 2));
  connections.CountReset(&kTwo);
  for (int i = 0; i < 2; ++i) connections.CountReset(&kOne);
  connections.CountAnswered(&kOne, 1);
  connections.CountReset(&kOne);
  EXPECT_FALSE(connections.wants_peers());
  connections.CountReset(&kOne);
  EXPECT_TRUE(connections.wants_peers());
  connections.LearnPeer(&kTwo, "ipv4:127.0.0.1:2");
  EXPECT_FALSE(other.Closed());
  EXPECT_FALSE(abuser.Closed());
  connections.LearnPeer(&kOne, "ipv4:127.0.0.1:1");
  EXPECT_TRUE(abuser.Closed());
  EXPECT_FALSE(other.Closed());
}

TEST(ConnectionsTest, AnIdentityThatIsUsedAgainBeginsAnew) {
  Connections connections({.max_connections = 9, .resets = {.calls = 1, .regained_per_second = 0}});
  Pair old, fresh;
  connections.Add(old.server.get(), V4("127.0.0.1", 1));
  connections.Add(fresh.server.get(), V4("127.0.0.1", 2));
  for (int i = 0; i < 2; ++i) connections.CountReset(&kOne);
  connections.LearnPeer(&kOne, "ipv4:127.0.0.1:1");
  EXPECT_TRUE(old.Closed());
  connections.CountReset(&kOne);
  connections.LearnPeer(&kOne, "ipv4:127.0.0.1:2");
  EXPECT_FALSE(fresh.Closed());
}

TEST(ConnectionsTest, ANameThatIsUsedAgainIsTheNewConnections) {
  Connections connections({.max_connections = 9, .resets = {.calls = 0, .regained_per_second = 0}});
  Pair old, fresh;
  const int held = connections.Add(old.server.get(), V4("127.0.0.1", 1));
  connections.Add(fresh.server.get(), V4("127.0.0.1", 1));
  connections.Remove(held);
  connections.CountReset(&kOne);
  connections.LearnPeer(&kOne, "ipv4:127.0.0.1:1");
  EXPECT_TRUE(fresh.Closed());
}

TEST(ConnectionsTest, UnixSocketsAreNeverCut) {
  Connections connections({.max_connections = 9, .resets = {.calls = 0, .regained_per_second = 0}});
  Pair pair;
  sockaddr_storage path{};
  path.ss_family = AF_UNIX;
  connections.Add(pair.server.get(), path);
  connections.CountReset(&kOne);
  connections.LearnPeer(&kOne, "unix:");
  EXPECT_FALSE(pair.Closed());
}

TEST(ConnectionsTest, OnlyThoseAreCutWhoseClientsDoNotEndThemAfterUs) {
  Connections connections({.max_connections = 9, .resets = {}});
  TcpPair ended, open;
  const int ended_number = connections.Add(ended.server.get(), V4("127.0.0.1", 1));
  const int open_number = connections.Add(open.server.get(), V4("127.0.0.1", 2));
  shutdown(ended.server.get(), SHUT_WR);
  connections.CutHalfClosed(absl::Hours(1));
  EXPECT_FALSE(IsCut(ended_number));
  for (int i = 0; i < 1000 && !IsCut(ended_number); ++i) {
    connections.CutHalfClosed(absl::ZeroDuration());
    absl::SleepFor(absl::Milliseconds(10));
  }
  EXPECT_TRUE(IsCut(ended_number));
  EXPECT_FALSE(IsCut(open_number));
}

}  // namespace
}  // namespace warpline
