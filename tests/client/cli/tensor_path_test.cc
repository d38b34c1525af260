#include "client/cli/tensor_path.h"

#include <gtest/gtest.h>

#include "client/cli/error.h"

namespace warpline::client {
namespace {

TEST(TensorPathTest, IsWhatBeginsWithAnAtSign) {
  EXPECT_TRUE(IsTensorPath("@"));
  EXPECT_TRUE(IsTensorPath("@0badcafe"));
  for (const char* path : {"", "x.npy", "./@x", "a@b"}) EXPECT_FALSE(IsTensorPath(path)) << path;
}

TEST(TensorPathTest, ShowsTheEndOfAnIdOnly) {
  EXPECT_EQ(Shown("@0badcafe-0123456789abcdef"), "@...89abcdef");
  EXPECT_EQ(Shown("@"), "@");
  EXPECT_EQ(Shown("./@0badcafe"), "./@0badcafe");
}

TEST(TensorPathTest, TakesIdsWithTheSignAndWithout) {
  EXPECT_EQ(*TensorId("@abc"), "abc");
  EXPECT_EQ(*TensorId("abc"), "abc");
  EXPECT_TRUE(IsUsageError(TensorId("@").status()));
  EXPECT_TRUE(IsUsageError(TensorId("").status()));
}

}  // namespace
}  // namespace warpline::client
