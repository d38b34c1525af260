#include "server/device/cut_ranges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace warpline {
namespace {

using ::testing::ElementsAre;

// One after the other from 0 to `length`, none of them empty.
void ExpectCovers(const std::vector<Range>& ranges, std::int64_t begin, std::int64_t length) {
  std::int64_t end = begin;
  for (const Range& range : ranges) {
    EXPECT_EQ(range.begin, end);
    EXPECT_GT(range.size, 0);
    end += range.size;
  }
  EXPECT_EQ(end, begin + length);
}

TEST(EvenRangesTest, AreAlikeAndLeaveNoSliver) {
  EXPECT_THAT(EvenRanges(8192, 1024, 32), ::testing::SizeIs(8));
  EXPECT_THAT(EvenRanges(10, 100, 1), ElementsAre(Range{0, 10}));
  EXPECT_THAT(EvenRanges(3, 1, 32), ElementsAre(Range{0, 1}, Range{1, 1}, Range{2, 1}));
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000; ++i) {
    const auto length = static_cast<std::int64_t>(1 + random() % (i % 2 == 0 ? 100000 : 300));
    const auto wanted = static_cast<std::int64_t>(1 + random() % static_cast<std::uint64_t>(length));
    const std::int64_t align = std::int64_t{1} << random() % 8;
    const std::vector<Range> ranges = EvenRanges(length, wanted, align);
    ExpectCovers(ranges, 0, length);
    const auto [least, most] = std::minmax_element(
        ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.size < b.size; });
    const bool aligned = least->size >= 4 * align;
    EXPECT_LE(most->size - least->size, aligned ? 2 * align : 4 * align)
        << length << " " << wanted << " " << align;
    EXPECT_GE(3 * most->size, 2 * wanted) << length << " " << wanted << " " << align;
    if (aligned) {
      for (const Range& range : ranges) EXPECT_EQ(range.begin % align, 0) << length << " " << wanted;
    }
  }
}

TEST(EvenRangesTest, LongLengthsDoNotOverflow) {
  const std::int64_t length = std::int64_t{1} << 56;
  ExpectCovers(EvenRanges(length, length / 1000, 256), 0, length);
}

TEST(GrowingPartsTest, BeginSmall) {
  EXPECT_THAT(GrowingParts({100, 2048}, 4, 1),
              ElementsAre(Range{100, 512}, Range{612, 512}, Range{1124, 1024}));
  EXPECT_THAT(GrowingParts({0, 100}, 2, 1), ElementsAre(Range{0, 50}, Range{50, 50}));
  EXPECT_THAT(GrowingParts({7, 100}, 1, 1), ElementsAre(Range{7, 100}));
}

TEST(GrowingPartsTest, HaveNoLessThanTheLeast) {
  EXPECT_THAT(GrowingParts({0, 100}, 4, 50), ElementsAre(Range{0, 50}, Range{50, 50}));
  EXPECT_THAT(GrowingParts({0, 100}, 4, 51), ElementsAre(Range{0, 100}));
  EXPECT_THAT(GrowingParts({0, 1}, 8, 1), ElementsAre(Range{0, 1}));
}

TEST(ShrinkingPartsTest, EndSmall) {
  EXPECT_THAT(ShrinkingParts({100, 2048}, 4, 1),
              ElementsAre(Range{100, 1024}, Range{1124, 512}, Range{1636, 512}));
}

TEST(GrowingPartsTest, CoverEverySize) {
  for (std::int64_t size = 1; size < 300; ++size) {
    for (int share : {1, 2, 4, 8, 16}) {
      ExpectCovers(GrowingParts({5, size}, share, 1), 5, size);
      ExpectCovers(ShrinkingParts({5, size}, share, 3), 5, size);
    }
  }
}

}  // namespace
}  // namespace warpline
