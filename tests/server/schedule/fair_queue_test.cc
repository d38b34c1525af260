#include "server/schedule/fair_queue.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace warpline {
namespace {

Claimant Owner(OwnerId owner) { return {.share = owner}; }

TEST(FairQueueTest, OneOwnersItemsKeepTheirOrder) {
  FairQueue<int> queue;
  for (int i = 0; i < 5; ++i) queue.Push(Owner(7), 1, static_cast<std::uint64_t>(i), i);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(queue.TakeFirst(), i);
  EXPECT_FALSE(queue.TakeFirst().has_value());
}

TEST(FairQueueTest, OwnersAreServedInProportionToWhatTheirItemsCost) {
  FairQueue<char> queue;
  for (int i = 0; i < 100; ++i) queue.Push(Owner(1), 3, 0, 'a');
  for (int i = 0; i < 100; ++i) queue.Push(Owner(2), 1, 0, 'b');
  std::map<char, int> served;
  for (int i = 0; i < 80; ++i) ++served[*queue.TakeFirst()];
  EXPECT_NEAR(served['a'], 20, 1);
  EXPECT_NEAR(served['b'], 60, 1);
}

TEST(FairQueueTest, WaitingSavesUpNoClaim) {
  FairQueue<char> queue;
  for (int i = 0; i < 100; ++i) queue.Push(Owner(1), 1, 0, 'a');
  for (int i = 0; i < 50; ++i) queue.TakeFirst();
  for (int i = 0; i < 100; ++i) queue.Push(Owner(2), 1, 0, 'b');
  std::map<char, int> served;
  for (int i = 0; i < 20; ++i) ++served[*queue.TakeFirst()];
  EXPECT_NEAR(served['a'], 10, 1);
}

TEST(FairQueueTest, SkipsOwnersWhoseOldestItemDoesNotFit) {
  FairQueue<int> queue;
  queue.Push(Owner(1), 1, 1, 100);
  queue.Push(Owner(1), 1, 2, 1);
  queue.Push(Owner(2), 1, 3, 2);
  const auto fits = [](int size) { return size < 10; };
  EXPECT_EQ(queue.TakeFirst(fits), 2);
  EXPECT_FALSE(queue.TakeFirst(fits).has_value());
  EXPECT_EQ(queue.size(), 2u);
}

TEST(FairQueueTest, LooksAtTheOwnersBehindTheFirstInTheOrderOfWhatTheyWereServed) {
  FairQueue<int> queue;
  for (OwnerId owner : {1, 2, 3}) {
    queue.Push(Owner(owner), /*cost=*/static_cast<double>(4 - owner), owner, 0);
    queue.Push(Owner(owner), 1, 10 + owner, static_cast<int>(owner));
  }
  for (int i = 0; i < 3; ++i) EXPECT_EQ(queue.TakeFirst(), 0);
  // The third owner was served least, then the second one.
  EXPECT_EQ(queue.TakeFirst([](int owner) { return owner != 3; }), 2);
  EXPECT_EQ(queue.TakeFirst([](int owner) { return owner == 1; }), 1);
  EXPECT_EQ(queue.TakeFirst(), 3);
}

TEST(FairQueueTest, OneLineWaitsWithoutHoldingUpAnother) {
  FairQueue<int> queue;
  queue.Push(Owner(1), 1, 1, 10, /*line=*/1);
  queue.Push(Owner(1), 1, 2, 1);
  queue.Push(Owner(1), 1, 3, 11, /*line=*/1);
  const auto fits = [](int size) { return size < 10; };
  EXPECT_EQ(queue.TakeFirst(fits), 1);
  EXPECT_FALSE(queue.TakeFirst(fits).has_value());
  EXPECT_EQ(queue.Remove(3), 11);
  EXPECT_EQ(queue.TakeFirst(), 10);
  EXPECT_TRUE(queue.empty());
}

TEST(FairQueueTest, LinesGoInOrderOfArrivalWhereAllFit) {
  FairQueue<char> queue;
  queue.Push(Owner(1), 1, 1, 'a');
  queue.Push(Owner(1), 1, 2, 'b', /*line=*/1);
  queue.Push(Owner(1), 1, 3, 'c');
  std::string order;
  while (!queue.empty()) order += *queue.TakeFirst();
  EXPECT_EQ(order, "abc");
}

TEST(FairQueueTest, ManyLinesAreTriedInOrderOfTheirOldestItems) {
  FairQueue<int> queue;
  for (const std::size_t line : {9, 0, 4, 4, 0, 9}) {
    queue.Push(Owner(1), 1, queue.size(), static_cast<int>(line), line);
  }
  EXPECT_EQ(queue.TakeFirst([](int line) { return line != 9; }), 0);
  EXPECT_EQ(queue.TakeFirst([](int line) { return line == 4; }), 4);
  std::vector<int> rest;
  while (!queue.empty()) rest.push_back(*queue.TakeFirst());
  EXPECT_EQ(rest, (std::vector<int>{9, 4, 0, 9}));
}

TEST(FairQueueTest, WhatIsPutBackIsTheFirstOfItsLine) {
  FairQueue<int> queue;
  for (const int id : {1, 2, 3}) queue.Push(Owner(1), 1, static_cast<std::uint64_t>(id), id, /*line=*/1);
  const int taken = *queue.TakeFirst();
  queue.PutBack(Owner(1), 1, 1, taken, /*line=*/1);
  for (const int id : {1, 2, 3}) EXPECT_EQ(queue.TakeFirst(), id);
}

TEST(FairQueueTest, RemovesById) {
  FairQueue<std::string> queue;
  queue.Push(Owner(1), 1, 10, "x");
  queue.Push(Owner(2), 1, 11, "y");
  EXPECT_EQ(queue.Remove(11), "y");
  EXPECT_FALSE(queue.Remove(11).has_value());
  EXPECT_EQ(queue.TakeFirst(), "x");
  EXPECT_TRUE(queue.empty());
}

TEST(FairQueueTest, ACorrectionCountsForTheNextTurn) {
  FairQueue<char> queue;
  for (int i = 0; i < 40; ++i) {
    queue.Push(Owner(1), 1, 0, 'a');
    queue.Push(Owner(2), 1, 0, 'b');
  }
  queue.Charge(Owner(1), 10);  // its items cost more than was thought
  int first_ten = 0;
  for (int i = 0; i < 10; ++i) first_ten += *queue.TakeFirst() == 'b';
  EXPECT_EQ(first_ten, 10);
}

TEST(FairQueueTest, TellsHowMuchMoreAnOwnerHasHadThanOthersThatWait) {
  FairQueue<char> queue;
  for (const OwnerId owner : {1, 1, 2, 2}) queue.Push(Owner(owner), 5, 0, 'x');
  const auto lead_of = [&](OwnerId owner) { return queue.LeadOf(Owner(owner)); };
  EXPECT_EQ(lead_of(1), 0);
  queue.TakeFirst();
  EXPECT_EQ(lead_of(1), 5);
  EXPECT_EQ(lead_of(2), 0);
  queue.Charge(Owner(2), 7);
  EXPECT_EQ(lead_of(1), 0);
  EXPECT_EQ(lead_of(2), 2);
}

TEST(FairQueueTest, APeersClientsShareWhatOnePeerGets) {
  FairQueue<char> queue;
  for (int i = 0; i < 100; ++i) {
    queue.Push({.share = 1, .client = 1}, 1, 0, 'a');
    queue.Push({.share = 1, .client = 2}, 1, 0, 'b');
    queue.Push({.share = 2, .client = 1}, 1, 0, 'c');
  }
  std::map<char, int> served;
  for (int i = 0; i < 80; ++i) ++served[*queue.TakeFirst()];
  EXPECT_NEAR(served['a'], 20, 1);
  EXPECT_NEAR(served['b'], 20, 1);
  EXPECT_NEAR(served['c'], 40, 1);
}

TEST(FairQueueTest, AClientsLeadOverAnotherOfItsPeerCounts) {
  FairQueue<char> queue;
  const Claimant ahead{.share = 1, .client = 1}, behind{.share = 1, .client = 2};
  for (const Claimant& client : {ahead, ahead, behind}) queue.Push(client, 5, 0, 'x');
  queue.TakeFirst();
  EXPECT_EQ(queue.LeadOf(ahead), 5);
  EXPECT_EQ(queue.LeadOf(behind), 0);
}

TEST(FairQueueTest, ManyOwnersThatComeAndGoAreServed) {
  FairQueue<int> queue;
  for (int i = 0; i < 2000; ++i) {
    queue.Push(Owner(static_cast<OwnerId>(i)), 1, static_cast<std::uint64_t>(i), i);
    if (i % 2 == 1) queue.TakeFirst();
  }
  EXPECT_EQ(queue.size(), 1000u);
}

}  // namespace
}  // namespace warpline
