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

}  // namespace
}  // namespace warpline::client
