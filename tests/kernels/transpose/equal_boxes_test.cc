// Boxes of equal words, moved on the host as the threads of a CTA do.
#include "kernels/transpose/equal_boxes.h"

#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/gather.h"

namespace warpline {
namespace {

struct Case {
  TransposeProblem problem;
  int element_bytes = 1;
};

Case MakeCase(int element_bytes, const std::vector<std::int64_t>& dims, const std::vector<int>& perm) {
  Case c{.problem = {}, .element_bytes = element_bytes};
  for (std::int64_t dim : dims) c.problem.shape.Append(dim);
  for (std::size_t i = 0; i < perm.size(); ++i) c.problem.perm[i] = static_cast<std::int8_t>(perm[i]);
  return c;
}

PackedBox PlanOf(const Case& c) { return PlanPackedBox(Canonicalize(c.problem), c.element_bytes); }

// For each byte of the output, where it comes from in the input.
std::vector<std::int64_t> Move(const Case& c, const PackedBox& box) {
  const std::int64_t bytes = c.problem.shape.Count() * c.element_bytes;
  std::vector<std::int64_t> out(static_cast<std::size_t>(bytes), -1);
  bool aligned = true;
  for (std::int64_t index = 0; index < box.boxes; ++index) {
    const BoxOrigin origin = LocateBox(box, index);
    std::vector<std::int64_t> tile(box.tile_bytes, -1);
    for (std::uint32_t word = 0; word < box.load.row_count * box.load.words; ++word) {
      const WordPlace place = FindWord(box, word, static_cast<std::uint32_t>(c.element_bytes));
      aligned &= (origin.in + place.in) % kEqualBoxWord == 0 && place.loaded % kEqualBoxWord == 0;
      for (std::uint32_t i = 0; i < kEqualBoxWord; ++i) tile.at(place.loaded + i) = origin.in + place.in + i;
    }
    for (std::uint32_t word = 0; word < box.store.row_count * box.store.words; ++word) {
      const WordPlace place = FindWord(box, word, static_cast<std::uint32_t>(c.element_bytes));
      aligned &= (origin.out + place.out) % kEqualBoxWord == 0;
      for (int i = 0; i < kEqualBoxWord; ++i) {
        const std::uint32_t from = place.stored +
                                   static_cast<std::uint32_t>(i / c.element_bytes) * box.gather.inner_stride +
                                   static_cast<std::uint32_t>(i % c.element_bytes);
        out.at(static_cast<std::size_t>(origin.out + place.out + i)) = tile.at(from);
      }
    }
  }
  EXPECT_TRUE(aligned);
  return out;
}

TEST(EqualBoxesTest, MovesEveryByteToItsPlace) {
  for (const Case& c :
       {MakeCase(1, {1000, 28, 28}, {0, 2, 1}), MakeCase(1, {12, 60000}, {1, 0}),
        MakeCase(1, {30, 2, 20, 20, 60}, {2, 4, 1, 0, 3}),
        MakeCase(2, {2, 12, 20, 16, 8, 8}, {0, 3, 1, 5, 2, 4}), MakeCase(4, {1000, 12, 12}, {0, 2, 1}),
        MakeCase(4, {3, 17, 40, 5, 31}, {4, 2, 0, 3, 1}),
        MakeCase(4, {2, 8, 6, 20, 4, 32}, {2, 5, 0, 4, 1, 3})}) {
    const PackedBox box = PlanOf(c);
    const std::string what = ToString(c.problem.shape);
    ASSERT_TRUE(SuitEqualBoxes(box, c.element_bytes, /*multiprocessors=*/1)) << what;
    std::vector<std::int64_t> want;
    for (std::int64_t element : Gather(c.problem)) {
      for (int byte = 0; byte < c.element_bytes; ++byte) want.push_back(element * c.element_bytes + byte);
    }
    EXPECT_TRUE(Move(c, box) == want) << what;
  }
}

TEST(EqualBoxesTest, BoxesThatSplitWordsDoNotSuit) {
  for (const Case& c : {MakeCase(1, {300001, 31}, {1, 0}), MakeCase(2, {200001, 24}, {1, 0}),
                        MakeCase(1, {1000, 27, 27}, {0, 2, 1})}) {
    EXPECT_FALSE(SuitEqualBoxes(PlanOf(c), c.element_bytes, 1)) << ToString(c.problem.shape);
  }
}

// Boxes that just fit into 48 KiB twice, but not with what the kernel has of its own.
TEST(EqualBoxesTest, SharedMemoryHoldsTwoBoxesAndTheirOrigins) {
  for (const Case& c :
       {MakeCase(1, {124, 156, 76, 16}, {1, 0, 3, 2}), MakeCase(2, {222, 235, 152, 8}, {1, 0, 3, 2})}) {
    const PackedBox box = PlanOf(c);
    ASSERT_LE(2 * box.tile_bytes, 48u << 10);
    ASSERT_GT(2 * box.tile_bytes + kBoxesOfCta * sizeof(BoxOrigin), 48u << 10);
    EXPECT_FALSE(SuitEqualBoxes(box, c.element_bytes, 1)) << ToString(c.problem.shape);
  }
}

TEST(EqualBoxesTest, FewBoxesDoNotSuit) {
  const Case c = MakeCase(1, {1000, 28, 28}, {0, 2, 1});
  const PackedBox box = PlanOf(c);
  EXPECT_TRUE(SuitEqualBoxes(box, 1, 1));
  EXPECT_FALSE(SuitEqualBoxes(box, 1, static_cast<int>(box.boxes)));
}

TEST(EqualBoxesTest, BoxesThatAreMovedFastByThemselvesDoNotSuit) {
  const Case c = MakeCase(4, {1000003, 16}, {1, 0});
  EXPECT_FALSE(SuitEqualBoxes(PlanOf(c), 4, 1));
}

}  // namespace
}  // namespace warpline
