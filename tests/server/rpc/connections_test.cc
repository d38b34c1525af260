#include "server/rpc/connections.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "tests/testing/addresses.h"

namespace warpline {
namespace {

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

const Peer kOne{.kind = Peer::Kind::kIpv4, .number = 1}, kTwo{.kind = Peer::Kind::kIpv4, .number = 2};

// Stands for gRPC's security context of a connection.
using Context = std::shared_ptr<const int>;

std::shared_ptr<Connection> FirstCallOf(Connections& connections, std::uint64_t number,
                                        const Context& context = std::make_shared<const int>(0)) {
  return connections.Find(context.get(), [&]() -> Connections::FirstCall {
    return {context, "unix-abstract:warpline-" + std::to_string(number)};
  });
}
std::shared_ptr<Connection> LaterCallOf(Connections& connections, const Context& context) {
  return connections.Find(context.get(), []() -> Connections::FirstCall {
    ADD_FAILURE() << "the context is not known";
    return {};
  });
}

TEST(ConnectionsTest, AreBoundedAndThoseWithCallsStay) {
  Connections connections({.max_connections = 1});
  Pair first, second;
  const auto held = connections.Add(first.server.get(), kOne, "one");
  ASSERT_TRUE(held.ok());
  FirstCallOf(connections, held->number)->AddCall();
  EXPECT_EQ(connections.Add(second.server.get(), kTwo, "two").status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(first.Closed());
  connections.Remove(held->duplicate);
  EXPECT_EQ(connections.size(), 0);
  EXPECT_TRUE(connections.Add(second.server.get(), kTwo, "two").ok());
}

TEST(ConnectionsTest, TheOneWithoutACallForLongestMakesRoom) {
  Connections connections({.max_connections = 3});
  Pair busy, idle, later, next;
  const auto first = connections.Add(busy.server.get(), kOne, "busy");
  FirstCallOf(connections, first->number)->AddCall();
  ASSERT_TRUE(connections.Add(idle.server.get(), kOne, "idle").ok());
  ASSERT_TRUE(connections.Add(later.server.get(), kOne, "later").ok());
  EXPECT_TRUE(connections.Add(next.server.get(), kTwo, "next").ok());
  EXPECT_TRUE(idle.Closed());
  EXPECT_FALSE(busy.Closed() || later.Closed());
}

TEST(ConnectionsTest, OneThatNeverHadACallMakesRoomBeforeAnyThatDid) {
  Connections connections({.max_connections = 2});
  Pair served, silent, next;
  const auto first = connections.Add(served.server.get(), kOne, "served");
  const std::shared_ptr<Connection> connection = FirstCallOf(connections, first->number);
  connection->AddCall();
  connection->RemoveCall(MonotonicClock::now());
  ASSERT_TRUE(connections.Add(silent.server.get(), kOne, "silent").ok());
  EXPECT_TRUE(connections.Add(next.server.get(), kTwo, "next").ok());
  EXPECT_TRUE(silent.Closed());
  EXPECT_FALSE(served.Closed());
}

TEST(ConnectionsTest, APeerLeavesAQuarterToOthers) {
  Connections connections({.max_connections = 8});
  std::vector<Pair> pairs(10);
  for (int i = 0; i < 6; ++i) {
    const auto added = connections.Add(pairs[static_cast<std::size_t>(i)].server.get(), kOne, "one");
    ASSERT_TRUE(added.ok()) << i;
    FirstCallOf(connections, added->number)->AddCall();
  }
  EXPECT_FALSE(connections.Add(pairs[6].server.get(), kOne, "one").ok());
  EXPECT_TRUE(connections.Add(pairs[7].server.get(), kTwo, "two").ok());
}

TEST(ConnectionsTest, ACallFindsItsConnection) {
  Connections connections({.max_connections = 9});
  Pair first, second;
  const auto one = connections.Add(first.server.get(), kOne, "one");
  const auto two = connections.Add(second.server.get(), kTwo, "two");
  const Context context = std::make_shared<const int>(0);
  EXPECT_EQ(FirstCallOf(connections, two->number, context)->name(), "two");
  EXPECT_EQ(LaterCallOf(connections, context)->name(), "two");
  EXPECT_EQ(FirstCallOf(connections, one->number)->name(), "one");
  EXPECT_EQ(context.use_count(), 2) << "no other connection may get its address";
}

TEST(ConnectionsTest, ALateCallFindsItsConnectionEnded) {
  Connections connections({.max_connections = 9});
  Pair pair;
  const auto added = connections.Add(pair.server.get(), kOne, "one");
  const Context context = std::make_shared<const int>(0);
  FirstCallOf(connections, added->number, context);
  connections.Remove(added->duplicate);
  EXPECT_EQ(context.use_count(), 1);
  const auto late = FirstCallOf(connections, added->number, context);
  EXPECT_EQ(late->name(), "one");
  EXPECT_TRUE(late->has_ended());
  EXPECT_TRUE(FirstCallOf(connections, 999)->has_ended());
}

TEST(ConnectionsTest, TheOneThatSpendsItsPeersBudgetIsCut) {
  Connections connections(
      {.max_connections = 9, .budgets = {.futile_calls = {.capacity = 2, .per_second = 0}}});
  Pair abuser, other;
  const auto one = connections.Add(abuser.server.get(), kOne, "one");
  const auto two = connections.Add(other.server.get(), kTwo, "two");
  const auto abusers = FirstCallOf(connections, one->number);
  const auto others = FirstCallOf(connections, two->number);
  connections.CountFutile(*others);
  for (int i = 0; i < 2; ++i) connections.CountFutile(*abusers);
  connections.CountAnswered(*abusers, 1);
  connections.CountFutile(*abusers);
  EXPECT_FALSE(abuser.Closed());
  connections.CountFutile(*abusers);
  EXPECT_TRUE(abuser.Closed());
  EXPECT_TRUE(abusers->has_ended());
  EXPECT_FALSE(other.Closed());
}

TEST(ConnectionsTest, OthersOfThePeerAreCutUnlessTheyHaveHadAnAnswer) {
  Connections open({.max_connections = 9, .budgets = {.futile_calls = {.capacity = 1, .per_second = 0}}});
  Pair abuser, fresh, good;
  const auto one = open.Add(abuser.server.get(), kOne, "abuser");
  open.Add(fresh.server.get(), kOne, "fresh").IgnoreError();
  const auto three = open.Add(good.server.get(), kOne, "good");
  FirstCallOf(open, three->number)->SetAnswered();
  const auto abusers = FirstCallOf(open, one->number);
  for (int i = 0; i < 2; ++i) open.CountFutile(*abusers);
  EXPECT_TRUE(abuser.Closed());
  EXPECT_TRUE(fresh.Closed());
  EXPECT_FALSE(good.Closed());
  Pair next;
  EXPECT_FALSE(open.Add(next.server.get(), kOne, "next").ok());
}

TEST(ConnectionsTest, OneThatIsAnsweredAndCancelsLittleIsNotCutForTheDebtOfOthers) {
  Connections open({.max_connections = 9, .budgets = {.futile_calls = {.capacity = 1, .per_second = 0}}});
  Pair abuser, good;
  const auto one = open.Add(abuser.server.get(), kOne, "abuser");
  const auto two = open.Add(good.server.get(), kOne, "good");
  const auto goods = FirstCallOf(open, two->number);
  goods->SetAnswered();
  const auto abusers = FirstCallOf(open, one->number);
  for (int i = 0; i < 2; ++i) open.CountFutile(*abusers);
  ASSERT_TRUE(abuser.Closed());
  for (int i = 0; i < 32; ++i) open.CountFutile(*goods);
  EXPECT_FALSE(good.Closed());
  open.CountFutile(*goods);
  EXPECT_TRUE(good.Closed()) << "it cancels much itself";
}

TEST(ConnectionTest, ItsFirstCallSaysWhichClientItIs) {
  Connection silent(7, -1, kOne, "silent"), named(8, -1, kOne, "named");
  EXPECT_EQ(silent.ClientOf(0), 7u);
  EXPECT_EQ(silent.ClientOf(1234), 7u);
  EXPECT_EQ(named.ClientOf(1234), 1234u);
  EXPECT_EQ(named.ClientOf(0), 1234u);
  EXPECT_EQ(named.ClientOf(99), 1234u);
}

TEST(ConnectionsTest, OnlyThoseAreCutWhoseClientsDoNotEndThemAfterUs) {
  Connections connections({.max_connections = 9});
  TcpPair ended, open;
  const int ended_number = connections.Add(ended.server.get(), kOne, "ended")->duplicate;
  const int open_number = connections.Add(open.server.get(), kTwo, "open")->duplicate;
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
