// Swizzled tiles in shared memory: no two chunks in one place, no bank conflicts.
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

// Arrays T[rows][columns], accessed in chunks of so many bytes.
template <int kElement, int kAccess, int kNX>
struct Array {
  static constexpr int kElementBytes = kElement, kAccessBytes = kAccess, kColumns = kNX;
  using Places = Swizzle<kElement, kAccess, kNX>;
};

template <typename Array>
class SwizzledArrayTest : public testing::Test {
 protected:
  static constexpr int kBanks = 32, kBankBytes = 4;
  static constexpr int kChunks = Array::Places::kChunks;

  // Banks that chunk x of rows first_y to first_y + 31 lie in.
  template <typename PlaceOf>
  static std::size_t CountBanks(int first_y, int x, PlaceOf place) {
    std::set<int> banks;
    for (int y = first_y; y < first_y + 32; ++y) {
      const int at = (y * kChunks + place(y, x)) * Array::kAccessBytes;
      for (int byte = at; byte < at + Array::kAccessBytes; ++byte) banks.insert(byte / kBankBytes % kBanks);
    }
    return banks.size();
  }
};

// The arrays of the rungs `swizzled` and `swizzled_vectorized`, of `swizzled_packed`, and others.
using Arrays =
    testing::Types<Array<4, 4, 32>, Array<8, 8, 32>, Array<4, 16, 32>, Array<8, 16, 32>, Array<1, 16, 128>,
                   Array<2, 16, 128>, Array<4, 16, 64>, Array<16, 16, 16>, Array<1, 1, 128>, Array<1, 4, 128>,
                   Array<2, 2, 64>, Array<2, 4, 64>, Array<4, 8, 256>, Array<4, 4, 8>, Array<4, 16, 8>,
                   Array<2, 2, 16>, Array<8, 8, 8>, Array<4, 4, 16>>;
TYPED_TEST_SUITE(SwizzledArrayTest, Arrays);

TYPED_TEST(SwizzledArrayTest, IsABijectionWithinEachRow) {
  for (int y = 0; y < 3 * this->kChunks + 1; ++y) {
    std::set<int> places;
    for (int x = 0; x < this->kChunks; ++x) {
      const int place = TypeParam::Places::Chunk(y, x);
      EXPECT_GE(place, 0);
      EXPECT_LT(place, this->kChunks);
      places.insert(place);
    }
    EXPECT_EQ(places.size(), static_cast<std::size_t>(this->kChunks)) << "row " << y;
  }
}

// A column of 32 rows lies in all banks if a row does and chunks fill banks; in one chunk's without the
// swizzle.
TYPED_TEST(SwizzledArrayTest, SpreadsColumnsOverTheBanks) {
  constexpr bool kAll = TypeParam::Places::kRowBytes >= 128 && TypeParam::kAccessBytes >= 4;
  for (int first_y : {0, 1, 7, 31, 32, 45}) {
    for (int x = 0; x < this->kChunks; ++x) {
      const std::size_t banks = this->CountBanks(first_y, x, TypeParam::Places::Chunk);
      const std::size_t plain = this->CountBanks(first_y, x, [](int, int at) { return at; });
      EXPECT_GE(banks, plain);
      if (!kAll) continue;
      EXPECT_EQ(banks, 32u) << "rows from " << first_y << ", chunk " << x;
      EXPECT_EQ(plain, static_cast<std::size_t>(TypeParam::kAccessBytes / 4));
    }
  }
}

template <typename Tile>
class SwizzleTest : public testing::Test {};

using TransposeTiles = testing::Types<TransposeTile<1>, TransposeTile<1, 8>, TransposeTile<2>,
                                      TransposeTile<4>, TransposeTile<8>, TransposeTile<16>>;
TYPED_TEST_SUITE(SwizzleTest, TransposeTiles);

TYPED_TEST(SwizzleTest, IsABijection) {
  using Tile = TypeParam;
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
  using Tile = TypeParam;
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
  using Tile = TypeParam;
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
  constexpr int kVector = TypeParam::kVector;
  constexpr int kBytes = kChunkBytes / kVector;
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

template <int kBytes>
using Bytes = std::integral_constant<int, kBytes>;

template <typename Size>
class OddTileTest : public testing::Test {};
using OddElementSizes = testing::Types<Bytes<1>, Bytes<2>, Bytes<4>, Bytes<8>>;
TYPED_TEST_SUITE(OddTileTest, OddElementSizes);

TYPED_TEST(OddTileTest, EveryRowHasAPlaceOfItsOwn) {
  using Tile = OddTile<TypeParam::value>;
  for (int x = 0; x < Tile::kTileX; ++x) {
    EXPECT_LT(Tile::Place(x), Tile::kTileX);
    EXPECT_EQ(Tile::RowAt(Tile::Place(x)), x);
  }
}

// Lanes that store have words of rows that are kPerWord apart.
TYPED_TEST(OddTileTest, LanesThatStoreMeetInNoBank) {
  using Tile = OddTile<TypeParam::value>;
  constexpr int kBanks = 32, kBanksOfWord = Tile::kWordBytes / 4, kAtOnce = Tile::kLanes / kBanksOfWord;
  for (int first = 0; first < Tile::kTileX; first += kAtOnce * Tile::kPerWord) {
    for (int i = 0; i < Tile::kPerWord; ++i) {
      std::set<int> banks;
      for (int lane = 0; lane < kAtOnce; ++lane) {
        banks.insert(Tile::Place(first + lane * Tile::kPerWord + i) * Tile::kPitch * kBanksOfWord % kBanks);
      }
      EXPECT_EQ(banks.size(), static_cast<std::size_t>(kAtOnce)) << "rows from " << first << ", word " << i;
    }
  }
}

// A sector may begin at any element of the halo's worth of elements, and is put together from a word more.
TYPED_TEST(OddTileTest, RowsHoldAShareWhereverItBegins) {
  using Tile = OddTile<TypeParam::value>;
  EXPECT_EQ(Tile::kTileY * TypeParam::value % Tile::kSectorBytes, 0);
  EXPECT_LE((Tile::kSectorBytes - TypeParam::value) / Tile::kWordBytes + Tile::kShareWords, Tile::kRowWords);
  EXPECT_LE(Tile::kWords * Tile::kWordBytes, 48 << 10);
}

}  // namespace
}  // namespace warpline
