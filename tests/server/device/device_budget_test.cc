#include "server/device/device_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace warpline {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string Message(const absl::StatusOr<std::size_t>& result) {
  return std::string(result.status().message());
}

TEST(DeviceBudgetTest, TakesWhatIsWantedWhereThereIsEnough) {
  EXPECT_EQ(*DecideDeviceBytes({.wanted = 500, .least = 100, .free = 1000, .margin = 200}), 500u);
  EXPECT_EQ(*DecideDeviceBytes({.wanted = 800, .least = 100, .free = 1000, .margin = 200}), 800u);
}

TEST(DeviceBudgetTest, TakesWhatAPartlyUsedDeviceHasLessTheMargin) {
  EXPECT_EQ(*DecideDeviceBytes({.wanted = 5000, .least = 100, .free = 1000, .margin = 200}), 800u);
  EXPECT_EQ(*DecideDeviceBytes({.wanted = 5000, .least = 800, .free = 1000, .margin = 200}), 800u);
}

TEST(DeviceBudgetTest, TakesTheLeastWhereLessIsWanted) {
  EXPECT_EQ(*DecideDeviceBytes({.wanted = 50, .least = 100, .free = 1000, .margin = 200}), 100u);
}

TEST(DeviceBudgetTest, RefusesADeviceWithoutTheLeastAndNamesTheFigures) {
  const auto refused = DecideDeviceBytes({.wanted = 5000, .least = 801, .free = 1000, .margin = 200});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(Message(refused), AllOf(HasSubstr("801"), HasSubstr("1000"), HasSubstr("200")));
  const auto full = DecideDeviceBytes({.wanted = 5000, .least = 1, .free = 100, .margin = 200});
  EXPECT_EQ(full.status().code(), absl::StatusCode::kUnavailable);
}

TEST(DeviceBudgetTest, AnExactFigureIsTakenWholeOrRefused) {
  EXPECT_EQ(*DecideDeviceBytes({.wanted = 800, .exact = true, .least = 100, .free = 1000, .margin = 200}),
            800u);
  const auto too_much =
      DecideDeviceBytes({.wanted = 801, .exact = true, .least = 100, .free = 1000, .margin = 200});
  EXPECT_EQ(too_much.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Message(too_much),
              AllOf(HasSubstr("--device-bytes=801"), HasSubstr("1000 bytes"), HasSubstr("200")));
  const auto full =
      DecideDeviceBytes({.wanted = 100, .exact = true, .least = 100, .free = 199, .margin = 200});
  EXPECT_EQ(full.status().code(), absl::StatusCode::kResourceExhausted);
  const auto too_little =
      DecideDeviceBytes({.wanted = 99, .exact = true, .least = 100, .free = 1000, .margin = 200});
  EXPECT_EQ(too_little.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(too_little), AllOf(HasSubstr("--device-bytes=99"), HasSubstr("100 bytes")));
}

}  // namespace
}  // namespace warpline
