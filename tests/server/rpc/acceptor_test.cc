#include "server/rpc/acceptor.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "server/base/mutex.h"
#include "tests/testing/bound.h"
#include "tests/testing/connect.h"
#include "tests/testing/patience.h"

namespace warpline {
namespace {

bool AwaitClosed(const UniqueFd& fd) {
  char byte = 0;
  return recv(fd.get(), &byte, 1, 0) <= 0;
}

// Keeps what it is given.
class Sink {
 public:
  Acceptor::Deliver Deliver() {
    return [this](int fd, Acceptor::Kind, std::uint64_t) {
      MutexLock lock(&mutex_);
      taken_.emplace_back(fd);
    };
  }
  int Await(std::size_t count) {
    MutexLock lock(&mutex_);
    const auto reached = [&] { return taken_.size() >= count; };
    if (!mutex_.AwaitUntil(reached, MonotonicClock::now() + kPatience)) NeverCame("connections");
    return taken_.back().get();
  }
  void CloseAll() {
    MutexLock lock(&mutex_);
    // Shuts the connections down as gRPC does.
    for (const UniqueFd& fd : taken_) shutdown(fd.get(), SHUT_RDWR);
    taken_.clear();
  }

 private:
  Mutex mutex_;
  std::vector<UniqueFd> taken_ ABSL_GUARDED_BY(mutex_);
};

void AwaitSize(const Connections& connections, int size) {
  AwaitThat("a number of connections", [&] { return connections.size() == size; });
}

TEST(AcceptorTest, DeliversConnectionsReadyForUse) {
  Connections connections({.max_connections = 9});
  auto acceptor =
      Acceptor::Listen({.listen = Bound({"127.0.0.1:0"}), .user_timeout = absl::Seconds(7)}, connections);
  ASSERT_TRUE(acceptor.ok()) << acceptor.status();
  Sink sink;
  (*acceptor)->Start(sink.Deliver());
  const UniqueFd client = ConnectTo((*acceptor)->addresses()[0]);
  const int fd = sink.Await(1);
  EXPECT_NE(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
  EXPECT_NE(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
  int value = 0;
  socklen_t size = sizeof(value);
  EXPECT_EQ(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, &size), 0);
  EXPECT_NE(value, 0);
  EXPECT_EQ(getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &value, &size), 0);
  EXPECT_EQ(value, 7000);
  EXPECT_EQ(getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &value, &size), 0);
  EXPECT_NE(value, 0);
  // In whole seconds, at least one: half of the user timeout, and a tenth of it.
  EXPECT_EQ(getsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &value, &size), 0);
  EXPECT_EQ(value, 3);
  EXPECT_EQ(getsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &value, &size), 0);
  EXPECT_EQ(value, 1);
}

TEST(AcceptorTest, SeesTheEndOfAConnectionWhicheverSideEndsIt) {
  Connections connections({.max_connections = 9});
  auto acceptor = Acceptor::Listen({.listen = Bound({"127.0.0.1:0"})}, connections);
  ASSERT_TRUE(acceptor.ok()) << acceptor.status();
  Sink sink;
  (*acceptor)->Start(sink.Deliver());
  const UniqueFd client = ConnectTo((*acceptor)->addresses()[0]);
  sink.Await(1);
  EXPECT_EQ(connections.size(), 1);
  sink.CloseAll();
  EXPECT_TRUE(AwaitClosed(client)) << "the duplicate keeps the connection open";
  AwaitSize(connections, 0);
}

TEST(AcceptorTest, OneBeyondTheBoundTakesThePlaceOfTheOneThatIsIdleForLongest) {
  Connections connections({.max_connections = 2});
  auto acceptor = Acceptor::Listen({.listen = Bound({"127.0.0.1:0"})}, connections);
  ASSERT_TRUE(acceptor.ok()) << acceptor.status();
  Sink sink;
  (*acceptor)->Start(sink.Deliver());
  const std::string address = (*acceptor)->addresses()[0];
  const UniqueFd first = ConnectTo(address);
  sink.Await(1);
  const UniqueFd second = ConnectTo(address);
  sink.Await(2);
  const UniqueFd third = ConnectTo(address);
  sink.Await(3);
  EXPECT_TRUE(AwaitClosed(first));
  AwaitSize(connections, 2);
}

TEST(AcceptorTest, AConnectionOfAProxyIsTheClientsAsSoonAsItSaysWhose) {
  Connections connections({.max_connections = 9});
  auto acceptor = Acceptor::Listen({.listen = {}, .proxy_listen = Bound({"127.0.0.1:0"})}, connections);
  ASSERT_TRUE(acceptor.ok()) << acceptor.status();
  Sink sink;
  (*acceptor)->Start(sink.Deliver());
  const std::string address = (*acceptor)->proxy_addresses()[0];
  const UniqueFd silent = ConnectTo(address);
  const UniqueFd wrong = ConnectTo(address);
  ASSERT_EQ(send(wrong.get(), "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24, MSG_NOSIGNAL), 24);
  EXPECT_TRUE(AwaitClosed(wrong));
  EXPECT_EQ(connections.size(), 0);
  // The header in two parts, and behind it what is not the acceptor's to read.
  const UniqueFd right = ConnectTo(address);
  const std::string sent =
      std::string("\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xcb\0\x71\x07\x7f\0\0\x01\x12\x67\x01\xbb", 28) + "PRI";
  ASSERT_EQ(send(right.get(), sent.data(), 20, MSG_NOSIGNAL), 20);
  absl::SleepFor(absl::Milliseconds(10));
  ASSERT_EQ(send(right.get(), sent.data() + 20, 11, MSG_NOSIGNAL), 11);
  const int fd = sink.Await(1);
  char rest[8] = {};
  EXPECT_EQ(recv(fd, rest, sizeof(rest), 0), 3);
  EXPECT_EQ(std::string(rest), "PRI");
  EXPECT_EQ(connections.size(), 1);
}

TEST(AcceptorTest, AfterStopNobodyListens) {
  Connections connections({.max_connections = 9});
  auto acceptor = Acceptor::Listen({.listen = Bound({"127.0.0.1:0"})}, connections);
  ASSERT_TRUE(acceptor.ok()) << acceptor.status();
  const std::string address = (*acceptor)->addresses()[0];
  EXPECT_FALSE(Listener::Bind(address, "--listen").ok()) << "two listen on one port";
  (*acceptor)->Start([](int fd, Acceptor::Kind, std::uint64_t) { close(fd); });
  (*acceptor)->Stop();
  EXPECT_TRUE(Acceptor::Listen({.listen = Bound({address})}, connections).ok());
}

TEST(ListenerTest, SaysWhatIsWrongWithAnAddress) {
  for (const std::string& bad :
       {std::string("unix:"), "unix:/" + std::string(200, 'x'), std::string("no.such.host.invalid:1")}) {
    const auto listener = Listener::Bind(bad, "--listen");
    EXPECT_TRUE(absl::IsInvalidArgument(listener.status())) << bad << ": " << listener.status();
  }
  EXPECT_TRUE(absl::IsUnavailable(Listener::Bind("unix:/no/such/folder/socket", "--listen").status()));
}

// Returns whether somebody listens on 127.0.0.1 or a path.
bool Listens(const std::string& address) {
  sockaddr_in port{};
  sockaddr_un path{};
  const bool is_path = address.rfind("unix:", 0) == 0;
  if (is_path) {
    path.sun_family = AF_UNIX;
    address.copy(path.sun_path, sizeof(path.sun_path) - 1, 5);
  } else {
    port.sin_family = AF_INET;
    port.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
    port.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  }
  const UniqueFd fd(socket(is_path ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto* name = is_path ? reinterpret_cast<sockaddr*>(&path) : reinterpret_cast<sockaddr*>(&port);
  return connect(fd.get(), name, is_path ? sizeof(path) : sizeof(port)) == 0;
}

TEST(ListenerTest, TakesTheAddressBeforeClientsMayConnect) {
  for (const std::string& wanted : {std::string("127.0.0.1:0"), "unix:" + testing::TempDir() + "bound"}) {
    auto listener = Listener::Bind(wanted, "--listen");
    ASSERT_TRUE(listener.ok()) << listener.status();
    EXPECT_FALSE(Listens(listener->address())) << wanted;
    ASSERT_TRUE(listener->Listen().ok());
    EXPECT_TRUE(Listens(listener->address())) << wanted;
    const absl::Status taken = Listener::Bind(listener->address(), "--listen").status();
    EXPECT_THAT(std::string(taken.message()),
                testing::StartsWith("--listen: cannot listen on " + listener->address()));
  }
}

TEST(ListenerTest, OfTwoThatTakeAPathAtTheSameTimeOneListens) {
  const std::string address = "unix:" + testing::TempDir() + "taken";
  auto first = Listener::Bind(address, "--listen"), second = Listener::Bind(address, "--listen");
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_TRUE(second->Listen().ok());
  EXPECT_TRUE(absl::IsUnavailable(first->Listen())) << first->Listen();
}

TEST(AcceptorTest, StopsListeningAndGoesOnWatching) {
  Connections connections({.max_connections = 9});
  auto acceptor = Acceptor::Listen({.listen = Bound({"127.0.0.1:0"})}, connections);
  ASSERT_TRUE(acceptor.ok()) << acceptor.status();
  const std::string address = (*acceptor)->addresses()[0];
  const UniqueFd waiting = ConnectTo(address);
  Sink sink;
  (*acceptor)->Start(sink.Deliver());
  (*acceptor)->StopListening();
  (*acceptor)->StopListening();
  sink.Await(1);
  EXPECT_EQ(connections.size(), 1);
  EXPECT_FALSE(connections.AwaitNone(absl::ZeroDuration(), absl::ZeroDuration()));
  EXPECT_TRUE(Acceptor::Listen({.listen = Bound({address})}, connections).ok()) << "the port is not free";
  sink.CloseAll();
  EXPECT_TRUE(connections.AwaitNone(absl::Minutes(1), absl::Minutes(1)));
}

}  // namespace
}  // namespace warpline
