#include "client/src/transfer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace warpline::client {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::size_t kMiB = 1 << 20;

TEST(RangesOfTest, AreWholeMessagesButForTheEnd) {
  EXPECT_THAT(RangesOf(0, 4), IsEmpty());
  EXPECT_THAT(RangesOf(1, 4), ElementsAre(ElementRange{0, 1}));
  EXPECT_THAT(RangesOf(kMiB + 1, 4), ElementsAre(ElementRange{0, kMiB}, ElementRange{kMiB, kMiB + 1}));
  EXPECT_THAT(RangesOf(5 * kMiB, 2),
              ElementsAre(ElementRange{0, 3 * kMiB}, ElementRange{3 * kMiB, 5 * kMiB}));
}

TEST(RangesOfTest, HaveAtMost64MiB) {
  EXPECT_THAT(RangesOf(64 * kMiB, 1), SizeIs(1));
  EXPECT_THAT(RangesOf(64 * kMiB + 1, 1),
              ElementsAre(ElementRange{0, 64 * kMiB}, ElementRange{64 * kMiB, 64 * kMiB + 1}));
  const std::vector<ElementRange> many = RangesOf(1000 * kMiB + 7, 4);
  std::size_t at = 0;
  for (const ElementRange& range : many) {
    EXPECT_EQ(range.begin, at);
    EXPECT_GT(range.end, at);
    EXPECT_LE(range.end - at, 64 * kMiB);
    at = range.end;
  }
  EXPECT_EQ(at, 1000 * kMiB + 7);
}

TEST(ChannelsForTest, GoesByTheSizeUnlessItIsTold) {
  EXPECT_EQ(*ChannelsFor(0, 64 * kMiB - 1), 1);
  EXPECT_EQ(*ChannelsFor(0, 64 * kMiB), 4);
  EXPECT_EQ(*ChannelsFor(16, 1), 16);
  EXPECT_TRUE(absl::IsInvalidArgument(ChannelsFor(17, 1).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ChannelsFor(-1, 1).status()));
}

}  // namespace
}  // namespace warpline::client
