#include "kernels/kept_plans.h"

#include <gtest/gtest.h>

#include <optional>

namespace warpline {
namespace {

using Plans = KeptPlans<PlanNumbers<2>, int, PlanNumbersHash>;

TEST(KeptPlansTest, NothingIsMadeAgainTheNextTime) {
  Plans plans(4);
  int calls = 0;
  const auto get = [&](std::optional<int> plan) {
    return plans.Get({1, 2}, [&] {
      ++calls;
      return plan;
    });
  };
  EXPECT_EQ(get(std::nullopt), nullptr);
  EXPECT_EQ(*get(5), 5);
  EXPECT_EQ(*get(6), 5);
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(plans.made(), 1);
}

TEST(KeptPlansTest, EveryNumberOfAKeyCounts) {
  Plans plans(100);
  int made = 0;
  const auto make = [&] { return std::optional(++made); };
  for (std::int64_t a = -2; a < 3; ++a) {
    for (std::int64_t b = -2; b < 3; ++b) {
      const int plan = *plans.Get({a << 40, b}, make);
      EXPECT_EQ(plan, made);
      EXPECT_EQ(*plans.Get({a << 40, b}, make), plan);
    }
  }
  EXPECT_EQ(made, 25);
  EXPECT_EQ(plans.size(), 25u);
}

TEST(KeptPlansTest, AreDroppedWhereThereAreTooMany) {
  Plans plans(4);
  for (std::int64_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(*plans.Get({i, 0}, [&] { return std::optional(static_cast<int>(i)); }), i);
    EXPECT_LE(plans.size(), 4u);
  }
  EXPECT_EQ(plans.made(), 1000);
}

}  // namespace
}  // namespace warpline
