#include "server/rpc/reset_budget.h"

#include <gtest/gtest.h>

namespace warpline {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1000);

TEST(ResetBudgetTest, IsSpentByResetsAlone) {
  ResetBudget budget({.calls = 10, .regained_per_second = 1}, kStart);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(budget.CountReset(kStart)) << i;
  EXPECT_FALSE(budget.CountReset(kStart));
}

TEST(ResetBudgetTest, AnAnsweredCallGivesOneBackButNeverMoreThanThereWere) {
  ResetBudget budget({.calls = 10, .regained_per_second = 0}, kStart);
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(budget.CountReset(kStart)) << i;
    budget.CountAnswered(1);
  }
  budget.CountAnswered(1000);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(budget.CountReset(kStart)) << i;
  EXPECT_FALSE(budget.CountReset(kStart));
}

TEST(ResetBudgetTest, TimeGivesBackAndAClockThatIsSetBackTakesNothing) {
  ResetBudget budget({.calls = 2, .regained_per_second = 1}, kStart);
  EXPECT_TRUE(budget.CountReset(kStart));
  EXPECT_TRUE(budget.CountReset(kStart - absl::Hours(1)));
  EXPECT_FALSE(budget.CountReset(kStart - absl::Hours(1)));
  EXPECT_TRUE(budget.CountReset(kStart + absl::Hours(1)));
}

}  // namespace
}  // namespace warpline
