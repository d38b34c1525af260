#include "client/cli/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace warpline::client {
namespace {

using testing::HasSubstr;

absl::StatusOr<Session> Open(const std::vector<std::string>& outputs) {
  const std::vector<std::string_view> words = {"gemm"};
  const auto args = Args::Parse(words, AllFlags());
  return Session::Create(*args, *CommonFlags::From(*args), outputs);
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
  const std::vector<std::string_view> words = {"gemm", "--ttl", "5s"};
  const auto args = Args::Parse(words, AllFlags());
  const CommonFlags common = *CommonFlags::From(*args);
  const std::string file = "x.npy", kept = "@";
  EXPECT_TRUE(IsUsageError(Session::Create(*args, common, std::span(&file, 1)).status()));
  const auto session = Session::Create(*args, common, std::span(&kept, 1));
  ASSERT_TRUE(session.ok());
  EXPECT_EQ(session->To("@").keep, absl::Seconds(5));
  EXPECT_FALSE(session->To("x.npy").keep);
}

}  // namespace
}  // namespace warpline::client
