#include "kernels/transpose/interleave.h"

#include <array>
#include <cstring>
#include <set>
#include <type_traits>
#include <utility>

#include "gtest/gtest.h"

namespace warpline {
namespace {

constexpr int kBankGroups = 8;  // of 16 bytes
constexpr int kPhase = 8;       // lanes that shared memory serves at a time with 16 bytes each
constexpr int kLanes = 32;

template <typename Group>
class InterleaveTest : public testing::Test {};
template <int kBytesOf, int kChannelsOf>
struct Kind {
  static constexpr int kBytes = kBytesOf, kChannels = kChannelsOf;
};
using Kinds = testing::Types<Kind<1, 2>, Kind<1, 3>, Kind<1, 4>, Kind<1, 8>, Kind<1, 16>, Kind<2, 2>,
                             Kind<2, 3>, Kind<2, 4>, Kind<2, 8>, Kind<2, 16>>;
TYPED_TEST_SUITE(InterleaveTest, Kinds);

// In either order each element has the number of its pixel and channel.
TYPED_TEST(InterleaveTest, MovesEachElementToItsPixelAndChannel) {
  constexpr int kBytes = TypeParam::kBytes, kChannels = TypeParam::kChannels;
  using Group = PixelGroup<kBytes, kChannels>;
  using Element = std::conditional_t<kBytes == 1, std::uint8_t, std::uint16_t>;
  using Elements = std::array<Element, static_cast<std::size_t>(Group::kPixels) * kChannels>;
  Elements interleaved, planar;
  for (int pixel = 0; pixel < Group::kPixels; ++pixel) {
    for (int channel = 0; channel < kChannels; ++channel) {
      const auto number = static_cast<Element>(pixel * kChannels + channel);
      interleaved[pixel * kChannels + channel] = number;
      planar[channel * Group::kPixels + pixel] = number;
    }
  }
  Chunk in[kChannels], out[kChannels];
  static_assert(sizeof(in) == sizeof(Elements));
  Elements got;
  std::memcpy(in, interleaved.data(), sizeof(in));
  Group::Deinterleave(in, out);
  std::memcpy(got.data(), out, sizeof(out));
  EXPECT_EQ(got, planar);
  std::memcpy(in, planar.data(), sizeof(in));
  Group::Interleave(in, out);
  std::memcpy(got.data(), out, sizeof(out));
  EXPECT_EQ(got, interleaved);
}

TYPED_TEST(InterleaveTest, ChunksHavePlacesOfTheirOwn) {
  constexpr int kChannels = TypeParam::kChannels, kChunks = kLanes * kChannels;
  std::set<int> seen;
  for (int chunk = 0; chunk < kChunks; ++chunk) {
    EXPECT_LT(PlaceOfChunk<kChannels>(chunk), kChunks);
    EXPECT_TRUE(seen.insert(PlaceOfChunk<kChannels>(chunk)).second) << chunk;
  }
}

TYPED_TEST(InterleaveTest, LanesHitDistinctBanks) {
  constexpr int kChannels = TypeParam::kChannels;
  for (int first = 0; first < kLanes; first += kPhase) {
    for (int i = 0; i < kChannels; ++i) {
      std::set<int> of_groups, of_neighbours;
      for (int lane = first; lane < first + kPhase; ++lane) {
        of_groups.insert(PlaceOfChunk<kChannels>(lane * kChannels + i) % kBankGroups);
        of_neighbours.insert(PlaceOfChunk<kChannels>(i * kLanes + lane) % kBankGroups);
      }
      EXPECT_EQ(of_groups.size(), std::size_t{kPhase}) << "lanes from " << first << ", chunk " << i;
      EXPECT_EQ(of_neighbours.size(), std::size_t{kPhase}) << "lanes from " << first << ", chunk " << i;
    }
  }
}

}  // namespace
}  // namespace warpline
