#include "server/rpc/peer_budgets.h"

#include <gtest/gtest.h>

namespace warpline {
namespace {

using Verdict = PeerBudgets::Verdict;
using std::chrono::seconds;

const MonotonicTime kStart = MonotonicTime() + std::chrono::hours(1000);
const Peer kAttacker{.kind = Peer::Kind::kIpv4, .number = 1}, kOther{.kind = Peer::Kind::kIpv4, .number = 2};

TEST(PeerBudgetsTest, AClosedConnectionTakesNoDebtAlong) {
  PeerBudgets budgets({.futile_calls = {.capacity = 2, .per_second = 1, .debt_max = 10}});
  ASSERT_EQ(budgets.AddConnection(kAttacker, kStart), Verdict::kTaken);
  EXPECT_TRUE(budgets.CountFutile(kAttacker, kStart));
  EXPECT_TRUE(budgets.CountFutile(kAttacker, kStart));
  EXPECT_FALSE(budgets.CountFutile(kAttacker, kStart));
  budgets.RemoveConnection(kAttacker);
  EXPECT_EQ(budgets.AddConnection(kAttacker, kStart), Verdict::kInDebt);
  EXPECT_EQ(budgets.AddConnection(kOther, kStart), Verdict::kTaken);
  EXPECT_EQ(budgets.AddConnection(kAttacker, kStart + seconds(2)), Verdict::kTaken);
}

TEST(PeerBudgetsTest, AnAnsweredCallPaysForAFutileOne) {
  PeerBudgets budgets({.futile_calls = {.capacity = 2}});
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(budgets.CountFutile(kAttacker, kStart)) << i;
    budgets.CountAnswered(kAttacker, 1);
  }
}

TEST(PeerBudgetsTest, NewConnectionsAreBoundedInTime) {
  PeerBudgets budgets({.connections = {.capacity = 3, .per_second = 1}});
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(budgets.AddConnection(kAttacker, kStart), Verdict::kTaken) << i;
    budgets.RemoveConnection(kAttacker);
  }
  EXPECT_EQ(budgets.AddConnection(kAttacker, kStart), Verdict::kTooManyConnections);
  EXPECT_EQ(budgets.AddConnection(kOther, kStart), Verdict::kTaken);
  EXPECT_EQ(budgets.AddConnection(kAttacker, kStart + seconds(1)), Verdict::kTaken);
}

TEST(PeerBudgetsTest, RemembersSoManyPeersAtMost) {
  PeerBudgets budgets({.futile_calls = {.capacity = 1}, .max_peers = 10});
  ASSERT_EQ(budgets.AddConnection(kOther, kStart), Verdict::kTaken);
  for (std::uint64_t user = 0; user < 1000; ++user) {
    budgets.CountFutile({.kind = Peer::Kind::kUser, .number = user}, kStart);
    ASSERT_LE(budgets.size(), 10u);
  }
  EXPECT_EQ(budgets.connections(kOther), 1) << "who is connected is not forgotten";
}

}  // namespace
}  // namespace warpline
