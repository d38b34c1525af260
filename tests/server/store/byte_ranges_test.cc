#include "server/store/byte_ranges.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <random>
#include <vector>

namespace warpline {
namespace {

TEST(ByteRangesTest, NeighboursBecomeOne) {
  ByteRanges ranges;
  ranges.Add({10, 20});
  ranges.Add({30, 40});
  EXPECT_EQ(ranges.count(), 2u);
  ranges.Add({20, 30});
  EXPECT_EQ(ranges.count(), 1u);
  EXPECT_EQ(ranges.bytes(), 30u);
  ranges.Add({0, 10});
  EXPECT_EQ(ranges.count(), 1u);
  EXPECT_EQ(ranges.FirstMissing(40), std::nullopt);
  EXPECT_EQ(ranges.FirstMissing(41), (ByteRange{40, 41}));
}

TEST(ByteRangesTest, AnEmptyRangeIsNothing) {
  ByteRanges ranges;
  ranges.Add({5, 5});
  EXPECT_EQ(ranges.count(), 0u);
  EXPECT_EQ(ranges.FirstCommon({0, 100}), std::nullopt);
  EXPECT_EQ(ranges.FirstMissing(0), std::nullopt);
  EXPECT_EQ(ranges.FirstMissing(1), (ByteRange{0, 1}));
}

TEST(ByteRangesTest, SaysItInWords) {
  EXPECT_EQ(ToString(ByteRange{4096, 8192}), "bytes 4096 to 8191");
  EXPECT_EQ(ToString(ByteRange{7, 7}), "no bytes at 7");
}

// Against one flag a byte.
TEST(ByteRangesTest, AgreesWithAFlagAByte) {
  constexpr std::size_t kSize = 64;
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    ByteRanges ranges;
    std::vector<bool> there(kSize, false);
    for (int i = 0; i < 40; ++i) {
      const std::size_t begin = random() % kSize, end = begin + random() % (kSize + 1 - begin);
      ByteRange common{kSize, kSize}, missing{kSize, kSize};
      for (std::size_t at = end; at-- > begin;) {
        if (!there[at]) continue;
        common.begin = at;
        if (at + 1 == end || !there[at + 1]) common.end = at + 1;
      }
      const bool any = common.begin != kSize;
      const auto found = ranges.FirstCommon({begin, end});
      ASSERT_EQ(found.has_value(), any) << begin << " " << end;
      if (any) {
        ASSERT_EQ(*found, common);
        continue;
      }
      ranges.Add({begin, end});
      for (std::size_t at = begin; at < end; ++at) there[at] = true;
      for (std::size_t at = kSize; at-- > 0;) {
        if (there[at]) continue;
        missing.begin = at;
        if (at + 1 == kSize || there[at + 1]) missing.end = at + 1;
      }
      const auto lacking = ranges.FirstMissing(kSize);
      ASSERT_EQ(lacking.has_value(), missing.begin != kSize);
      ASSERT_EQ(lacking.value_or(missing), missing);
    }
  }
}

}  // namespace
}  // namespace warpline
