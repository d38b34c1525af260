#include "server/observe/crash_report.h"

#include <gtest/gtest.h>

#include <array>

namespace warpline {

// Has a name that the report can show.
[[gnu::noinline]] void ReadBeyondTheEnd(const std::array<int, 2>& numbers, std::size_t index) {
  EXPECT_EQ(numbers[index], 0);
}

namespace {

TEST(CrashReportDeathTest, NamesTheFunctionOfAFailedAssertionAndTheRunningRequests) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer has a report of its own";
#endif
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        ReportCrashes("/proc/self/exe");
        const RunningRequest running("request-7");
        ReadBeyondTheEnd({}, 5);
      },
      "SIGABRT received(.|\n)*ReadBeyondTheEnd(.|\n)*request_id=request-7\n");
}

}  // namespace
}  // namespace warpline
