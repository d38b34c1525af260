// Boxes of permutations, moved on the host as the threads of a CTA do, in words: together they move every
// element to where the problem wants it, and touch nothing outside the tensors.
#include "kernels/transpose/packed_box.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace warpline {
namespace {

struct Case {
  TransposeProblem problem;
  int element_bytes = 1;
  std::int64_t in_base = 0, out_base = 0;  // addresses, of which only the place in a word matters
};

std::string Describe(const Case& c) {
  std::string what = ToString(c.problem.shape) + " perm";
  for (int i = 0; i < c.problem.shape.rank; ++i) what += " " + std::to_string(c.problem.perm[i]);
  return what + " rows " + std::to_string(c.problem.row_stride) + " of " + std::to_string(c.element_bytes) +
         " bytes at " + std::to_string(c.in_base) + ", " + std::to_string(c.out_base);
}

// For each element of the output, in order, its offset in the input.
std::vector<std::int64_t> Gather(const TransposeProblem& problem) {
  const Strides in_strides = RowMajorStrides(problem.shape, problem.row_stride);
  std::vector<std::int64_t> offsets = {0};
  for (int axis = 0; axis < problem.shape.rank; ++axis) {
    std::vector<std::int64_t> next;
    for (std::int64_t offset : offsets) {
      for (std::int64_t i = 0; i < problem.shape[problem.perm[axis]]; ++i) {
        next.push_back(offset + i * in_strides[problem.perm[axis]]);
      }
    }
    offsets = std::move(next);
  }
  return offsets;
}

// The kernel on the host. A tensor's contents are the addresses of its bytes.
class Emulator {
 public:
  explicit Emulator(const Case& c)
      : case_(c),
        box_(PlanPackedBox(Canonicalize(c.problem), c.element_bytes)),
        word_(std::max(4, c.element_bytes)) {}

  void Run(std::vector<std::int64_t>& out) {
    ASSERT_LE(box_.SharedBytes(), 48u << 10);
    ASSERT_LE(sizeof(PackedBox), 4096u - 64);
    for (std::int64_t index = 0; index < box_.boxes; ++index) {
      const BoxOrigin origin = LocateBox(box_, index);
      tile_.assign(box_.tile_bytes, -1);
      ASSERT_NO_FATAL_FAILURE(Load(case_.in_base + origin.in));
      ASSERT_NO_FATAL_FAILURE(Store(case_.out_base + origin.out, out));
    }
  }

 private:
  void Fill(std::int64_t at, std::int64_t address, std::int64_t bytes) {
    for (std::int64_t i = 0; i < bytes; ++i) {
      ASSERT_TRUE(address + i >= case_.in_base && address + i < case_.in_base + box_.in_extent)
          << "reads outside";
      ASSERT_TRUE(at + i >= 0 && at + i < std::ssize(tile_)) << "outside the tile: " << at + i;
      ASSERT_TRUE(tile_[at + i] == -1 || tile_[at + i] == address + i) << "two rows meet in the tile";
      tile_[at + i] = address + i;
    }
  }

  void Load(std::int64_t base) {
    const std::int64_t before = into_word_ = base % word_;
    const std::int64_t end = base + box_.box_extent;
    const bool whole = base - before >= case_.in_base &&
                       end + (word_ - end % word_) % word_ <= case_.in_base + box_.in_extent;
    for (std::uint32_t index = 0; index < box_.load.count; ++index) {
      const RowPlace place = LocateRow(box_.load, index);
      const std::int64_t row = base + place.offset, skipped = row % word_;
      const std::int64_t to = before + place.tile - skipped;
      ASSERT_EQ(to % word_, 0) << "words are no words in the tile";
      const auto words = static_cast<std::uint32_t>((skipped + box_.load.row_bytes + word_ - 1) / word_);
      const std::uint32_t last = EndOfSegment(box_.load, place, words);
      for (std::uint32_t word = place.first_word; word < last; ++word) {
        const std::int64_t byte = std::int64_t{word} * word_;
        if (whole || (word > 0 && word + 1 < words)) {
          ASSERT_NO_FATAL_FAILURE(Fill(to + byte, row - skipped + byte, word_));
          continue;
        }
        for (std::int64_t i = byte; i < byte + word_; i += case_.element_bytes) {
          if (i < skipped || i >= skipped + box_.load.row_bytes) continue;
          ASSERT_NO_FATAL_FAILURE(Fill(to + i, row - skipped + i, case_.element_bytes));
        }
      }
    }
  }

  void Store(std::int64_t base, std::vector<std::int64_t>& out) {
    const std::int64_t size = case_.element_bytes;
    for (std::uint32_t index = 0; index < box_.store.count; ++index) {
      const RowPlace place = LocateRow(box_.store, index);
      const std::int64_t row = base + place.offset, skipped = row % word_;
      const std::int64_t count = box_.store.row_bytes / size;
      const auto words = static_cast<std::uint32_t>((skipped + box_.store.row_bytes + word_ - 1) / word_);
      const std::uint32_t last = EndOfSegment(box_.store, place, words);
      const std::int64_t per_word = word_ / size;
      const bool stepwise = box_.gather.inner_words && skipped == 0;
      for (std::uint32_t word = place.first_word; word < last; ++word) {
        const std::int64_t first = (std::int64_t{word} * word_ - skipped) / size;
        const std::uint32_t first_place =
            first < 0 ? 0 : TableEntry(box_.gather, static_cast<std::uint32_t>(first));
        for (std::int64_t i = first; i < first + per_word; ++i) {
          if (i < 0 || i >= count) continue;
          const std::uint32_t step = TableEntry(box_.gather, static_cast<std::uint32_t>(i));
          if (stepwise || box_.gather.rank == 0) {
            ASSERT_EQ(step, first < 0 ? step : first_place + (i - first) * box_.gather.inner_stride);
          }
          if (box_.gather.rank > 0) {  // the kernel's table ends
            const std::int64_t entry = first < 0 ? i : first % box_.gather.period.divisor + (i - first);
            ASSERT_LT(entry, box_.table_entries);
          }
          for (std::int64_t byte = 0; byte < size; ++byte) {
            const std::int64_t at = into_word_ + place.tile + step + byte;
            ASSERT_LT(at, std::ssize(tile_));
            const std::int64_t to = row + i * size + byte - case_.out_base;
            ASSERT_TRUE(to >= 0 && to < std::ssize(out)) << "writes outside";
            ASSERT_NE(tile_[at], -1) << "never loaded";
            ASSERT_TRUE(out[to] == -1 || out[to] == tile_[at]);
            out[to] = tile_[at];
          }
        }
      }
    }
  }

  const Case case_;
  const PackedBox box_;
  const std::int64_t word_;
  std::vector<std::int64_t> tile_;  // addresses of the bytes in it; -1: none yet
  std::int64_t into_word_ = 0;      // how far the box begins into a word
};

void ExpectMovesAll(const Case& c) {
  SCOPED_TRACE(Describe(c));
  const std::vector<std::int64_t> want = Gather(c.problem);
  std::vector<std::int64_t> got(want.size() * c.element_bytes, -1);
  ASSERT_NO_FATAL_FAILURE(Emulator(c).Run(got));
  for (std::size_t i = 0; i < got.size(); ++i) {
    const auto element = i / c.element_bytes, byte = i % c.element_bytes;
    ASSERT_EQ(got[i], c.in_base + want[element] * c.element_bytes + static_cast<std::int64_t>(byte)) << i;
  }
}

Case MakeCase(const std::vector<std::int64_t>& dims, const std::vector<int>& perm, int element_bytes) {
  Case c;
  for (std::int64_t dim : dims) c.problem.shape.Append(dim);
  for (std::size_t i = 0; i < perm.size(); ++i) c.problem.perm[i] = static_cast<std::int8_t>(perm[i]);
  c.element_bytes = element_bytes;
  c.in_base = c.out_base = 256;
  return c;
}

constexpr int kElementBytes[] = {1, 2, 4, 8, 16};

TEST(PackedBoxTest, MovesRandomProblems) {
  std::mt19937 random(1);
  auto below = [&random](std::int64_t n) { return static_cast<std::int64_t>(random() % n); };
  for (int i = 0; i < 1000; ++i) {
    const int rank = 1 + static_cast<int>(below(6));
    std::vector<std::int64_t> dims(rank);
    std::int64_t count = 1;
    for (std::int64_t& dim : dims) {
      dim = std::min<std::int64_t>(1 + below(below(3) == 0 ? 200 : 12), 30000 / count);
      dim = std::max<std::int64_t>(dim, 1);
      count *= dim;
    }
    std::shuffle(dims.begin(), dims.end(), random);
    std::vector<int> perm(rank);
    std::iota(perm.begin(), perm.end(), 0);
    std::shuffle(perm.begin(), perm.end(), random);
    Case c = MakeCase(dims, perm, kElementBytes[below(5)]);
    if (Canonicalize(c.problem).rank == 0) continue;
    if (below(3) == 0) c.problem.row_stride = dims.back() + below(5);
    c.in_base += below(16) * c.element_bytes;
    c.out_base += below(16) * c.element_bytes;
    ASSERT_NO_FATAL_FAILURE(ExpectMovesAll(c));
  }
}

TEST(PackedBoxTest, MovesWhatUsersSend) {
  const std::vector<std::pair<std::vector<std::int64_t>, std::vector<int>>> problems = {
      {{4001, 3}, {1, 0}},
      {{3, 4001}, {1, 0}},
      {{16001, 2}, {1, 0}},
      {{30011, 1}, {1, 0}},
      {{255, 257}, {1, 0}},
      {{511, 130}, {1, 0}},
      {{3001, 31}, {1, 0}},
      {{4000, 16}, {1, 0}},
      {{2, 1000, 3}, {0, 2, 1}},
      {{2, 4, 40, 50}, {0, 2, 3, 1}},
      {{500, 12, 12}, {0, 2, 1}},
      {{200, 8, 16}, {0, 2, 1}},
      {{4000, 4, 4}, {0, 2, 1}},
      {{90, 28, 28}, {0, 2, 1}},
      {{60, 32, 32}, {0, 2, 1}},
      {{2, 3, 4, 50, 6, 7}, {5, 3, 1, 4, 2, 0}},
      {{33, 17, 4, 9, 5}, {4, 2, 0, 3, 1}},
      {{300, 40, 7}, {1, 0, 2}},
      {{5, 7000, 2}, {1, 0, 2}},
  };
  for (const auto& [dims, perm] : problems) {
    for (int element_bytes : kElementBytes) {
      Case c = MakeCase(dims, perm, element_bytes);
      ASSERT_NO_FATAL_FAILURE(ExpectMovesAll(c));
      c.in_base += element_bytes;
      c.out_base += 3 * element_bytes;
      ASSERT_NO_FATAL_FAILURE(ExpectMovesAll(c));
      c.problem.row_stride = dims.back() + 3;
      ASSERT_NO_FATAL_FAILURE(ExpectMovesAll(c));
    }
  }
}

}  // namespace
}  // namespace warpline
