#include "kernels/transpose/channel_words.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/transpose/problem.h"

namespace warpline {
namespace {

// The pixels of a word: random elements, pixel by pixel.
template <typename T>
std::vector<T> RandomPixels(int channels, std::mt19937& random) {
  std::vector<T> elements(channels * (4 / sizeof(T)));
  for (T& element : elements) element = static_cast<T>(random());
  return elements;
}

// The same as words: of planes, and side by side.
template <typename T>
std::vector<std::uint32_t> Planes(const std::vector<T>& pixels, int channels) {
  constexpr int kPixels = 4 / sizeof(T);
  std::vector<std::uint32_t> words(channels);
  for (int c = 0; c < channels; ++c) {
    T plane[kPixels];
    for (int pixel = 0; pixel < kPixels; ++pixel) plane[pixel] = pixels[pixel * channels + c];
    std::memcpy(&words[c], plane, 4);
  }
  return words;
}
template <typename T>
std::vector<std::uint32_t> SideBySide(const std::vector<T>& pixels) {
  std::vector<std::uint32_t> words(pixels.size() * sizeof(T) / 4);
  std::memcpy(words.data(), pixels.data(), words.size() * 4);
  return words;
}

// Works as threads do that share the groups, in parts of `part` groups.
template <typename T>
void ExpectChangesOrder(int channels, int part, std::mt19937& random) {
  using Word = WordOfPixels<sizeof(T)>;
  const std::vector<T> pixels = RandomPixels<T>(channels, random);
  const std::vector<std::uint32_t> planes = Planes(pixels, channels), joined = SideBySide(pixels);
  std::vector<int> times(channels);
  std::vector<std::uint32_t> got(channels);
  const auto store = [&](int i, std::uint32_t word) {
    ASSERT_LT(i, channels);
    got[i] = word;
    ++times[i];
  };
  const auto in_parts = [&](auto change) {
    std::fill(times.begin(), times.end(), 0);
    for (int begin = 0; begin < Word::Groups(channels); begin += part) {
      change(begin, std::min(begin + part, Word::Groups(channels)));
    }
    EXPECT_EQ(times, std::vector<int>(channels, 1)) << "words written";
  };
  in_parts([&](int begin, int end) {
    Word::Join(
        channels, begin, end, [&](int c) { return planes.at(c); }, store);
  });
  EXPECT_EQ(got, joined) << "joined";
  in_parts([&](int begin, int end) {
    // The word after the last is another's.
    Word::Split(
        channels, begin, end, [&](int i) { return i == channels ? 0xdeadbeef : joined.at(i); }, store);
  });
  EXPECT_EQ(got, planes) << "split";
}

TEST(ChannelWordsTest, ChangeBetweenTheOrders) {
  std::mt19937 random(7);
  for (int channels = 4; channels <= 160; ++channels) {
    for (int part : {1, 2, 3, 7, 1000}) {
      SCOPED_TRACE(testing::Message() << channels << " channels, " << part << " groups a thread");
      ExpectChangesOrder<std::uint8_t>(channels, part, random);
      ExpectChangesOrder<std::uint16_t>(channels, part, random);
      if (HasFailure()) return;
    }
  }
}

TileWalk Walk(const std::vector<std::int64_t>& dims, const std::vector<int>& perm,
              std::int64_t row_stride = 0) {
  return MakeTileWalk(Canonicalize(MakeTranspose(dims, perm, row_stride)));
}

ChannelSide SideOf(const TileWalk& walk, std::size_t element_bytes = 1, std::uintptr_t in = 256,
                   std::uintptr_t out = 512) {
  return ChannelWordsOf(walk, element_bytes, reinterpret_cast<const void*>(in),
                        reinterpret_cast<const void*>(out));
}

TEST(ChannelWordsTest, AnyNumberOfChannelsSuits) {
  for (std::int64_t channels : {7, 8, 29, 96, 160}) {
    EXPECT_EQ(SideOf(Walk({10008, channels}, {1, 0})), ChannelSide::kSplit);
    EXPECT_EQ(SideOf(Walk({channels, 10008}, {1, 0})), ChannelSide::kJoined);
    EXPECT_EQ(SideOf(Walk({3, channels, 100, 100}, {0, 2, 3, 1})), ChannelSide::kJoined);
  }
  EXPECT_EQ(SideOf(Walk({129, 10008}, {1, 0}), 2), ChannelSide::kNone);
  EXPECT_EQ(SideOf(Walk({10008, 129}, {1, 0}), 2), ChannelSide::kSplit);
  EXPECT_EQ(SideOf(Walk({10008, 190}, {1, 0})), ChannelSide::kSplit);
  EXPECT_EQ(SideOf(Walk({10008, 191}, {1, 0})), ChannelSide::kNone);
  EXPECT_EQ(SideOf(Walk({188, 10008}, {1, 0})), ChannelSide::kJoined);
  EXPECT_EQ(SideOf(Walk({189, 10008}, {1, 0})), ChannelSide::kNone);
  EXPECT_EQ(SideOf(Walk({4, 10008}, {1, 0})), ChannelSide::kNone);
  EXPECT_EQ(SideOf(Walk({10008, 3}, {1, 0})), ChannelSide::kNone);
}

TEST(ChannelWordsTest, ElementsThatAreWordsAreOnlySplit) {
  EXPECT_EQ(SideOf(Walk({10007, 24}, {1, 0}), 4), ChannelSide::kSplit);
  EXPECT_EQ(SideOf(Walk({10007, 25}, {1, 0}), 4), ChannelSide::kNone);
  EXPECT_EQ(SideOf(Walk({24, 10007}, {1, 0}), 4), ChannelSide::kNone);
  EXPECT_EQ(SideOf(Walk({10007, 24}, {1, 0}), 8), ChannelSide::kNone);
  // Boxes are faster for few pixels, except where planes are not aligned to 16 bytes.
  EXPECT_EQ(SideOf(Walk({1000, 1028, 4}, {0, 2, 1}), 4), ChannelSide::kNone);
  EXPECT_EQ(SideOf(Walk({1000, 1023, 4}, {0, 2, 1}), 4), ChannelSide::kSplit);
  EXPECT_EQ(SideOf(Walk({1000, 900, 4}, {0, 2, 1}), 4), ChannelSide::kNone);
}

TEST(ChannelWordsTest, PlanesMayBeUnaligned) {
  for (std::int64_t pixels : {10006, 10007}) {
    EXPECT_EQ(SideOf(Walk({pixels, 29}, {1, 0})), ChannelSide::kSplit);
    EXPECT_EQ(SideOf(Walk({pixels, 29}, {1, 0}), 2), ChannelSide::kSplit);
    EXPECT_EQ(SideOf(Walk({29, pixels}, {1, 0})), ChannelSide::kJoined);
    EXPECT_EQ(SideOf(Walk({29, pixels}, {1, 0}, /*row_stride=*/10011)), ChannelSide::kJoined);
    EXPECT_EQ(SideOf(Walk({2, 29, pixels}, {0, 2, 1})), ChannelSide::kJoined);
    EXPECT_EQ(SideOf(Walk({2, pixels, 29}, {0, 2, 1})), ChannelSide::kSplit);
  }
  EXPECT_EQ(SideOf(Walk({29, 10007}, {1, 0}), 1, /*in=*/256, /*out=*/515), ChannelSide::kJoined);
  EXPECT_EQ(SideOf(Walk({10008, 29}, {1, 0}), 1, /*in=*/256, /*out=*/515), ChannelSide::kSplit);
}

TEST(ChannelWordsTest, InputsBeginWithAWord) {
  EXPECT_EQ(SideOf(Walk({29, 10007}, {1, 0}), 1, /*in=*/257), ChannelSide::kNone);
  EXPECT_EQ(SideOf(Walk({10007, 29}, {1, 0}), 1, /*in=*/257), ChannelSide::kNone);
}

TEST(ChannelWordsTest, UnalignedPlanesAreNotSplitIfSmallOrFullTiles) {
  EXPECT_EQ(SideOf(Walk({10007, 4}, {1, 0})), ChannelSide::kNone);
  EXPECT_EQ(SideOf(Walk({10007, 5}, {1, 0})), ChannelSide::kSplit);
  EXPECT_EQ(SideOf(Walk({1000, 1023, 24}, {0, 2, 1})), ChannelSide::kNone);
  EXPECT_EQ(SideOf(Walk({1000, 1025, 24}, {0, 2, 1})), ChannelSide::kSplit);
  EXPECT_EQ(SideOf(Walk({10007, 116}, {1, 0})), ChannelSide::kSplit);
  EXPECT_EQ(SideOf(Walk({10007, 117}, {1, 0})), ChannelSide::kNone);
  EXPECT_EQ(SideOf(Walk({10008, 117}, {1, 0})), ChannelSide::kSplit);
}

TEST(ChannelWordsTest, BeginWithWords) {
  const auto begin = [](const TileWalk& walk, std::size_t element_bytes, std::uintptr_t out = 512) {
    return BeginWithWords(walk, element_bytes, nullptr, reinterpret_cast<const void*>(out));
  };
  EXPECT_TRUE(begin(Walk({10006, 29}, {1, 0}), 2));
  EXPECT_FALSE(begin(Walk({10006, 29}, {1, 0}), 1));
  EXPECT_TRUE(begin(Walk({2, 10008, 29}, {0, 2, 1}), 1));
  EXPECT_FALSE(begin(Walk({2, 10008, 29}, {0, 2, 1}), 1, /*out=*/514));
  EXPECT_TRUE(begin(Walk({2, 10007, 29}, {0, 2, 1}), 4));
}

TEST(ChannelWordsTest, PixelsFollowEachOther) {
  EXPECT_EQ(SideOf(Walk({10008, 29}, {1, 0}, /*row_stride=*/32)), ChannelSide::kNone);
  EXPECT_EQ(SideOf(Walk({29, 5, 10008}, {2, 1, 0})), ChannelSide::kNone);
}

TEST(ChannelWordsTest, FewPixelsDoNotSuit) {
  EXPECT_EQ(SideOf(Walk({1000, 508, 29}, {0, 2, 1})), ChannelSide::kNone);
  EXPECT_EQ(SideOf(Walk({1000, 512, 29}, {0, 2, 1})), ChannelSide::kSplit);
  EXPECT_EQ(SideOf(Walk({1000, 256, 29}, {0, 2, 1}), 2), ChannelSide::kSplit);
}

TEST(ChannelWordsTest, FitIntoTheSharedMemoryOfEveryGpu) {
  constexpr int kMaxBytes = 48 << 10;
  for (int channels = 4; channels <= 190; ++channels) {
    for (std::int64_t words : {256, 1000, 1 << 20}) {
      for (std::int64_t plane : {4 * words, 4 * words + 8, 4 * words + 1}) {
        const ChannelShare split = ShareOf(ChannelSide::kSplit, channels, words, plane, plane % 4 != 0);
        EXPECT_LE(4 * (split.Words() * split.pitch + 1), kMaxBytes) << channels;
        const ChannelShare joined = ShareOf(ChannelSide::kJoined, channels, words, plane, false);
        const int joined_bytes = 4 * (joined.Words() * joined.pitch + channels * joined.Row());
        if (channels <= 188) {
          EXPECT_LE(joined_bytes, kMaxBytes) << channels;
        }
        EXPECT_EQ(split.pitch % 2, 1) << channels;
        // Words side by side, and one of nothing after those of each word of the planes if channels are even.
        EXPECT_EQ(split.PlaceOf(channels - 1), channels - 1);
        EXPECT_EQ(split.PlaceOf(3 * channels), 3 * split.pitch);
        EXPECT_GE(split.Words(), 32);
      }
    }
  }
}

TEST(ChannelWordsTest, PiecesFillMostOfTheirCtas) {
  // 5000 words are ten pieces of 512; of 600 two would be, with two fifths of a piece for nothing.
  EXPECT_EQ(ShareOf(ChannelSide::kSplit, 5, 5000, 20000, false).Words(), 512);
  EXPECT_EQ(ShareOf(ChannelSide::kJoined, 5, 600, 2400, false).Words(), 256);
  // Unaligned planes are written one word in 32 less a piece: 512 words take two of 496.
  EXPECT_EQ(ShareOf(ChannelSide::kSplit, 5, 512, 2047, true).Words(), 128);
  EXPECT_EQ(ShareOf(ChannelSide::kSplit, 5, 512, 2047, true).UnalignedWords(), 124);
}

TEST(ChannelWordsTest, PiecesThatShareSectorsAreLonger) {
  constexpr std::int64_t kWords = 1 << 20, kAligned = 4 * kWords, kSharing = 4 * kWords + 8;
  EXPECT_EQ(ShareOf(ChannelSide::kSplit, 30, kWords, kAligned, false).Words(), 64);
  EXPECT_EQ(ShareOf(ChannelSide::kSplit, 30, kWords, kSharing, false).Words(), 128);
  EXPECT_EQ(ShareOf(ChannelSide::kSplit, 90, kWords, kSharing, false).Words(), 128);
  EXPECT_EQ(ShareOf(ChannelSide::kSplit, 150, kWords, kSharing, false).Words(), 64);
  EXPECT_EQ(ShareOf(ChannelSide::kSplit, 60, kWords, kAligned + 16, false).Words(), 32);
  EXPECT_EQ(ShareOf(ChannelSide::kSplit, 136, kWords, kAligned + 16, false).Words(), 64);
  EXPECT_EQ(ShareOf(ChannelSide::kSplit, 136, kWords, kAligned, false).Words(), 32);
  EXPECT_EQ(ShareOf(ChannelSide::kSplit, 30, kWords, kAligned + 1, true).Words(), 128);
  EXPECT_EQ(ShareOf(ChannelSide::kJoined, 30, kWords, kSharing, false).Words(),
            64);  // those that are only read
}

}  // namespace
}  // namespace warpline
