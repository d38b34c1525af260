#include "client/src/transfer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace warpline::client {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::size_t kMebibyte = 1 << 20;

TEST(RangesOfTest, AreWholeMessagesButForTheEnd) {
  EXPECT_THAT(RangesOf(0, 4), IsEmpty());
  EXPECT_THAT(RangesOf(1, 4), ElementsAre(ElementRange{0, 1}));
  EXPECT_THAT(RangesOf(kMebibyte + 1, 4),
              ElementsAre(ElementRange{0, kMebibyte}, ElementRange{kMebibyte, kMebibyte + 1}));
  EXPECT_THAT(RangesOf(5 * kMebibyte, 2),
              ElementsAre(ElementRange{0, 3 * kMebibyte}, ElementRange{3 * kMebibyte, 5 * kMebibyte}));
}

TEST(RangesOfTest, HaveAtMost64MiB) {
  EXPECT_THAT(RangesOf(64 * kMebibyte, 1), SizeIs(1));
  EXPECT_THAT(RangesOf(64 * kMebibyte + 1, 1),
              ElementsAre(ElementRange{0, 64 * kMebibyte}, ElementRange{64 * kMebibyte, 64 * kMebibyte + 1}));
  const std::vector<ElementRange> many = RangesOf(1000 * kMebibyte + 7, 4);
  std::size_t at = 0;
  for (const ElementRange& range : many) {
    EXPECT_EQ(range.begin, at);
    EXPECT_GT(range.end, at);
    EXPECT_LE(range.end - at, 64 * kMebibyte);
    at = range.end;
  }
  EXPECT_EQ(at, 1000 * kMebibyte + 7);
}

TEST(ChannelsForTest, GoesByTheSizeUnlessItIsTold) {
  EXPECT_EQ(*ChannelsFor(0, 0), 1);
  EXPECT_EQ(*ChannelsFor(0, 4 * kMebibyte - 1), 1);
  EXPECT_EQ(*ChannelsFor(0, 4 * kMebibyte), 2);
  EXPECT_EQ(*ChannelsFor(0, 1024 * kMebibyte), 8);
  EXPECT_EQ(*ChannelsFor(64, 1), 64);
  EXPECT_TRUE(absl::IsInvalidArgument(ChannelsFor(65, 1).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ChannelsFor(-1, 1).status()));
}

}  // namespace
}  // namespace warpline::client
