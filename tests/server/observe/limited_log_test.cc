#include "server/observe/limited_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"

namespace warpline {
namespace {

using ::testing::HasSubstr;

TEST(LimitedLogTest, WhatIsLeftOutIsCounted) {
  constexpr int kLines = 500;
  LimitedLog log;
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < kLines; ++i) log.Write("warning", "too much", {{"peer", "a b"}});
  absl::SleepFor(absl::Milliseconds(1100));  // the budget is that of a second of the clock
  log.Write("warning", "too much", {{"peer", "a b"}});
  const std::vector<std::string> lines =
      absl::StrSplit(::testing::internal::GetCapturedStderr(), '\n', absl::SkipEmpty());
  // The 500 may have taken more than a second on a loaded machine, and have had several budgets.
  EXPECT_THAT(lines.size(), ::testing::AllOf(::testing::Ge(11u), ::testing::Lt(400u)));
  EXPECT_THAT(lines.front(), HasSubstr(" level=warning msg=\"too much\" peer=\"a b\""));
  int left_out = 0;
  for (const std::string& line : lines) {
    const std::vector<std::string> parts = absl::StrSplit(line, " lines_left_out=");
    int count = 0;
    if (parts.size() == 2 && absl::SimpleAtoi(parts[1], &count)) left_out += count;
  }
  EXPECT_EQ(static_cast<int>(lines.size()) + left_out, kLines + 1);
}

}  // namespace
}  // namespace warpline
