#include "client/cli/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace warpline::client {
namespace {

using testing::HasSubstr;

absl::StatusOr<Session> Open(const std::vector<std::string>& outputs) {
  return Session::Create({}, {.server = "host:1"}, outputs);
}

TEST(SessionTest, NeedsAnOutput) {
  EXPECT_TRUE(IsUsageError(Open({}).status()));
  EXPECT_THAT(std::string(Open({}).status().message()), HasSubstr("-o OUT.npy is missing"));
}

TEST(SessionTest, NeedsAFileForEachOutput) {
  EXPECT_TRUE(Open({"x.npy", "y.npy", "/dev/null", "/dev/null"}).ok());
  for (const auto& outputs : std::vector<std::vector<std::string>>{{"y.npy", "y.npy"}, {"-", "x.npy", "-"}}) {
    EXPECT_TRUE(IsUsageError(Open(outputs).status()));
  }
  EXPECT_EQ(Open({"x.npy", "y.npy", "./x.npy"}).status().message(),
            "-o ./x.npy: another result goes there, as x.npy");
}

TEST(SessionTest, TakesOutputsThatStayOnTheServer) {
  EXPECT_TRUE(Open({"@", "x.npy", "@"}).ok());
  // An id and an array cannot both go to standard output.
  EXPECT_TRUE(IsUsageError(Open({"@", "-"}).status()));
  EXPECT_TRUE(IsUsageError(Open({"-", "@"}).status()));
  const absl::Status named = Open({"@0123456789abcdef"}).status();
  EXPECT_TRUE(IsUsageError(named));
  EXPECT_THAT(std::string(named.message()), HasSubstr("-o @...89abcdef: "));
  EXPECT_TRUE(Open({"./@x"}).ok());
}

TEST(SessionTest, TakesALeaseOnlyOfWhatStays) {
  const SessionFlags flags{.ttl = absl::Seconds(5)};
  const CommonFlags common{.server = "host:1"};
  const std::string file = "x.npy", kept = "@";
  EXPECT_TRUE(IsUsageError(Session::Create(flags, common, std::span(&file, 1)).status()));
  const auto session = Session::Create(flags, common, std::span(&kept, 1));
  ASSERT_TRUE(session.ok());
  EXPECT_EQ(session->To("@").keep, absl::Seconds(5));
  EXPECT_FALSE(session->To("x.npy").keep);
}

}  // namespace
}  // namespace warpline::client
