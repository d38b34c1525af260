// The shared-memory tile of the transposition: no two chunks in one place, no bank conflicts.
#include "kernels/transpose/swizzle.h"

#include <array>
#include <cstring>
#include <set>
#include <type_traits>

#include "gtest/gtest.h"
#include "kernels/transpose/micro_transpose.h"

namespace warpline {
namespace {

constexpr int kBankGroups = 8;  // of 16 bytes: 32 banks of 4
constexpr int kPhase = 8;       // lanes that shared memory serves at once with 16-byte accesses

template <typename Bytes>
class SwizzleTest : public testing::Test {};

template <int kBytes>
using Bytes = std::integral_constant<int, kBytes>;
using ElementSizes = testing::Types<Bytes<1>, Bytes<2>, Bytes<4>, Bytes<8>, Bytes<16>>;
TYPED_TEST_SUITE(SwizzleTest, ElementSizes);

TYPED_TEST(SwizzleTest, IsABijection) {
  using Tile = TransposeTile<TypeParam::value>;
  std::set<int> seen;
  for (int row = 0; row < Tile::kTile; ++row) {
    for (int chunk = 0; chunk < Tile::kSide; ++chunk) {
      const int index = Tile::ChunkIndex(row, chunk);
      EXPECT_GE(index, 0);
      EXPECT_LT(index, Tile::kTile * Tile::kSide);
      EXPECT_TRUE(seen.insert(index).second) << "row " << row << " chunk " << chunk;
    }
  }
}

TYPED_TEST(SwizzleTest, StoresOfAPhaseHitDistinctBanks) {
  using Tile = TransposeTile<TypeParam::value>;
  for (int first = 0; first < Tile::kThreads; first += kPhase) {
    for (int i = 0; i < Tile::kVector; ++i) {
      std::set<int> groups;
      for (int thread = first; thread < first + kPhase; ++thread) {
        const int lane = thread % Tile::kSide, group = thread / Tile::kSide;
        groups.insert(Tile::ChunkIndex(lane * Tile::kVector + i, group) % kBankGroups);
      }
      EXPECT_EQ(groups.size(), std::size_t{kPhase}) << "threads from " << first << ", row " << i;
    }
  }
}

TYPED_TEST(SwizzleTest, LoadsOfAPhaseHitDistinctBanks) {
  using Tile = TransposeTile<TypeParam::value>;
  for (int first = 0; first < Tile::kThreads; first += kPhase) {
    for (int pass = 0; pass < Tile::kVector; ++pass) {
      std::set<int> groups;
      for (int thread = first; thread < first + kPhase; ++thread) {
        const int lane = thread % Tile::kSide, group = thread / Tile::kSide;
        groups.insert(Tile::ChunkIndex(pass * Tile::kSide + group, lane) % kBankGroups);
      }
      EXPECT_EQ(groups.size(), std::size_t{kPhase}) << "threads from " << first << ", pass " << pass;
    }
  }
}

TYPED_TEST(SwizzleTest, MicroTileIsTransposedInRegisters) {
  constexpr int kBytes = TypeParam::value;
  constexpr int kVector = kChunkBytes / kBytes;
  Chunk in[kVector], out[kVector];
  std::array<std::array<unsigned char, kBytes>, kVector * kVector> before, after;
  for (int element = 0; element < kVector * kVector; ++element) {
    for (int byte = 0; byte < kBytes; ++byte) before[element][byte] = element * kBytes + byte;
  }
  static_assert(sizeof(in) == sizeof(before));
  std::memcpy(in, before.data(), sizeof(in));
  TransposeMicroTile<kBytes>(in, out);
  std::memcpy(after.data(), out, sizeof(out));
  for (int i = 0; i < kVector; ++i) {
    for (int j = 0; j < kVector; ++j) EXPECT_EQ(after[i * kVector + j], before[j * kVector + i]);
  }
}

}  // namespace
}  // namespace warpline
