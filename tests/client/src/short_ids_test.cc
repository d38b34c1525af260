#include "client/src/short_ids.h"

#include <gtest/gtest.h>

#include <string>

namespace warpline::client {
namespace {

const std::string kId = "410e9bc9-8015160a8eb8167f32327b3b944e7266";

TEST(ShortIdsTest, ShortensIdsWhereverTheyStand) {
  EXPECT_EQ(WithShortIds(kId), "...944e7266");
  EXPECT_EQ(WithShortIds("b=@" + kId + ": no input b"), "b=@...944e7266: no input b");
  EXPECT_EQ(WithShortIds(kId + "," + kId + "\n@" + kId), "...944e7266,...944e7266\n@...944e7266");
  EXPECT_EQ(WithShortIds("cafe" + kId + "01"), "...4e726601") << "one that was typed wrongly";
}

TEST(ShortIdsTest, ShortensIdsThatLackSomething) {
  EXPECT_EQ(WithShortIds(kId.substr(1)), "...944e7266");
  EXPECT_EQ(WithShortIds(kId.substr(0, kId.size() - 1)), "...b944e726");
  EXPECT_EQ(WithShortIds("8-8015160A8EB8167F"), "...8EB8167F");
}

TEST(ShortIdsTest, LeavesEverythingElse) {
  for (const char* text :
       {"", "-", "a-", "x.npy", "(request 65bcf2bf-00000000)", "at most 9223372036854775807 bytes",
        "--alpha=-9223372036854775808", "20261122-123456.npy", "410e9bc9-8015160a8eb8167",
        "123e4567-e89b-12d3-a456-426614174000", "the sha256 8015160a8eb8167f32327b3b944e7266"}) {
    EXPECT_EQ(WithShortIds(text), text);
  }
}

}  // namespace
}  // namespace warpline::client
