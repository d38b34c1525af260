#include "server/schedule/fair_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "server/base/errors.h"
#include "tests/testing/status_matchers.h"

namespace warpline {
namespace {

using ::testing::HasSubstr;
using ::warpline::testing::IsOk;
using ::warpline::testing::StatusIs;

constexpr Claimant kA{.share = 1}, kB{.share = 2}, kC{.share = 3};

class FairBudgetTest : public ::testing::Test {
 protected:
  // How many of single units the claimant gets.
  int Fill(const Claimant& claimant) {
    int taken = 0;
    for (auto part = budget_.Take(claimant); part.ok(); part = budget_.Take(claimant)) {
      parts_.push_back(*std::move(part));
      ++taken;
    }
    return taken;
  }
  FairBudget budget_{{.total = 100, .what = "things"}};
  std::vector<FairBudget::Part> parts_;
};

TEST(UngrantedFairBudgetTest, OneTakeLeavesAQuarterToo) {
  FairBudget budget({.total = 1600, .what = "bytes", .first_is_granted = false});
  const Claimant identity{.share = 1}, client{.share = 2, .client = 1}, another{.share = 2, .client = 2};
  EXPECT_EQ(budget.Largest(identity), 1200);
  EXPECT_EQ(budget.Largest(client), 900);
  EXPECT_THAT(budget.Take(identity, 1201), StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("1200")));
  EXPECT_THAT(budget.Take(client, 901), StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("900")));
  const auto first = budget.Take(client, 900);
  ASSERT_THAT(first, IsOk());
  EXPECT_THAT(budget.Take(another, 226), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(budget.Take(identity, 526), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(budget.Take(another, 225), IsOk()) << "3/4 of what is left of the peer's 1200";
  EXPECT_THAT(budget.Take(identity, 525), IsOk()) << "3/4 of what is left of 1600";
}

TEST_F(FairBudgetTest, OneShareLeavesAQuarterToThoseWhoCome) {
  EXPECT_EQ(Fill(kA), 75);
  EXPECT_EQ(Fill(kB), 19);
  EXPECT_GT(Fill(kC), 0);
}

TEST_F(FairBudgetTest, SharesThatFillUpSideBySideHoldTheSame) {
  int a = 0, b = 0;
  for (bool some = true; some;) {
    some = false;
    for (int* const taken : {&a, &b}) {
      auto part = budget_.Take(taken == &a ? kA : kB);
      if (!part.ok()) continue;
      parts_.push_back(*std::move(part));
      ++*taken;
      some = true;
    }
  }
  EXPECT_NEAR(a, 100 * 3 / 7, 1);
  EXPECT_NEAR(b, 100 * 3 / 7, 1);
}

TEST_F(FairBudgetTest, AClientLeavesSomeToTheOthersOfItsShare) {
  EXPECT_EQ(Fill({.share = 1, .client = 1}), 57);
  EXPECT_EQ(Fill({.share = 1, .client = 2}), 14);
  EXPECT_GT(Fill({.share = 1, .client = 3}), 0);
  EXPECT_GT(Fill(kB), 10);
}

TEST_F(FairBudgetTest, WhatIsReturnedMayBeTakenAgain) {
  EXPECT_EQ(Fill(kA), 75);
  parts_.resize(50);
  EXPECT_EQ(budget_.used(), 50);
  EXPECT_EQ(Fill(kA), 25);
  parts_.clear();
  EXPECT_EQ(budget_.used(), 0);
}

TEST_F(FairBudgetTest, TheFirstOfAShareIsRefusedOnlyIfNothingIsLeft) {
  FairBudget small({.total = 2, .what = "things"});
  const auto first = small.Take(kA), second = small.Take(kB), third = small.Take(kC);
  EXPECT_TRUE(first.ok() && second.ok());
  EXPECT_FALSE(third.ok());
}

TEST_F(FairBudgetTest, ARefusalHasTheFiguresAndADelay) {
  const auto most = budget_.Take(kA, 70);
  ASSERT_TRUE(most.ok());
  const absl::Status status = budget_.Take(kA, 10).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(
      status.message(),
      "the server is full: of 100 things 70 are in use, 70 of them by this client, which may have 75 at "
      "present and wants 10 more");
  EXPECT_EQ(RetryAfterOf(status), absl::Milliseconds(50));
}

}  // namespace
}  // namespace warpline
