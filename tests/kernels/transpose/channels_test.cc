#include "kernels/transpose/channels.h"

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/transpose/problem.h"

namespace warpline {
namespace {

TileWalk Walk(const std::vector<std::int64_t>& dims, const std::vector<int>& perm,
              std::int64_t row_stride = 0) {
  return MakeTileWalk(Canonicalize(MakeTranspose(dims, perm, row_stride)));
}

bool Suit(const TileWalk& walk, std::size_t element_bytes = 1, std::uintptr_t in = 256,
          std::uintptr_t out = 512) {
  return SuitChannels(walk, element_bytes, reinterpret_cast<const void*>(in),
                      reinterpret_cast<const void*>(out));
}

TEST(ChannelsTest, AreTheSideThatHasAsManyAsAKernelTakes) {
  EXPECT_EQ(ChannelSideOf(Walk({8192, 3}, {1, 0})), ChannelSide::kSplit);
  EXPECT_EQ(ChannelSideOf(Walk({3, 8192}, {1, 0})), ChannelSide::kJoined);
  EXPECT_EQ(ChannelSideOf(Walk({8, 224, 224, 4}, {0, 3, 1, 2})), ChannelSide::kSplit);
  EXPECT_EQ(ChannelSideOf(Walk({8, 4, 224, 224}, {0, 2, 3, 1})), ChannelSide::kJoined);
  EXPECT_EQ(ChannelSideOf(Walk({8192, 5}, {1, 0})), ChannelSide::kNone);
  EXPECT_EQ(ChannelSideOf(Walk({512, 512}, {1, 0})), ChannelSide::kNone);
}

TEST(ChannelsTest, PixelsFollowEachOther) {
  EXPECT_EQ(ChannelSideOf(Walk({8192, 3}, {1, 0}, /*row_stride=*/4)), ChannelSide::kNone);
  EXPECT_TRUE(Suit(Walk({3, 8192}, {1, 0}, /*row_stride=*/8208)));  // planes need not
}

TEST(ChannelsTest, ImagesOf8And16BitElementsSuit) {
  for (std::size_t bytes : {1, 2}) {
    EXPECT_TRUE(Suit(Walk({8, 224, 224, 3}, {0, 3, 1, 2}), bytes));
    EXPECT_TRUE(Suit(Walk({8, 3, 224, 224}, {0, 2, 3, 1}), bytes));
  }
  EXPECT_FALSE(Suit(Walk({8, 224, 224, 3}, {0, 3, 1, 2}), 4));
}

TEST(ChannelsTest, WhatIsNoMultipleOfAVectorDoesNotSuit) {
  EXPECT_TRUE(Suit(Walk({8208, 3}, {1, 0})));
  EXPECT_FALSE(Suit(Walk({8209, 3}, {1, 0})));
  EXPECT_FALSE(Suit(Walk({3, 8192}, {1, 0}, /*row_stride=*/8193)));
  EXPECT_FALSE(Suit(Walk({8192, 3}, {1, 0}), 1, /*in=*/257));
  EXPECT_FALSE(Suit(Walk({8192, 3}, {1, 0}), 1, /*in=*/256, /*out=*/520));
}

TEST(ChannelsTest, FewPixelsDoNotSuit) {
  EXPECT_FALSE(Suit(Walk({8176, 3}, {1, 0})));
  EXPECT_FALSE(Suit(Walk({1000, 64, 3}, {0, 2, 1})));
  EXPECT_TRUE(Suit(Walk({4096, 3}, {1, 0}), 2));
}

}  // namespace
}  // namespace warpline
