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
#include "tests/kernels/gather.h"

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

// The kernel on the host. What it moves are the addresses of bytes.
class Emulator {
 public:
  explicit Emulator(const Case& c)
      : case_(c),
        box_(PlanPackedBox(Canonicalize(c.problem), c.element_bytes)),
        word_(std::max(4, c.element_bytes)) {}

  // Returns what went wrong first, "" if nothing did.
  std::string Run(std::vector<std::int64_t>& out) {
    Check(box_.SharedBytes() <= 48u << 10, "too much shared memory");
    for (std::int64_t index = 0; index < box_.boxes; ++index) {
      const BoxOrigin origin = LocateBox(box_, index);
      tile_.assign(box_.tile_bytes, -1);
      Load(case_.in_base + origin.in);
      Store(case_.out_base + origin.out, out);
    }
    return failure_;
  }

 private:
  bool Check(bool holds, const char* otherwise) {
    if (!holds && failure_.empty()) failure_ = otherwise;
    return holds;
  }

  void Fill(std::int64_t at, std::int64_t address, std::int64_t bytes) {
    const bool reads = address >= case_.in_base && address + bytes <= case_.in_base + box_.in_extent;
    if (!Check(reads, "reads outside") ||
        !Check(at >= 0 && at + bytes <= std::ssize(tile_), "writes outside the tile")) {
      return;
    }
    for (std::int64_t i = 0; i < bytes; ++i) {
      Check(tile_[at + i] == -1 || tile_[at + i] == address + i, "rows meet in the tile");
      tile_[at + i] = address + i;
    }
  }

  void Load(std::int64_t base) {
    into_word_ = base % word_;
    const std::int64_t end = base + box_.box_extent;
    const bool whole = base - into_word_ >= case_.in_base &&
                       end + (word_ - end % word_) % word_ <= case_.in_base + box_.in_extent;
    for (std::uint32_t index = 0; index < box_.load.count; ++index) {
      const RowPlace place = LocateRow(box_.load, index);
      RowPlace advanced = LocateRow(box_.load, index / 2);
      AdvanceRow(box_.load, index, index - index / 2, advanced);
      Check(advanced.offset == place.offset && advanced.tile == place.tile, "rows are not reached by steps");
      const std::int64_t row = base + place.offset, skipped = row % word_;
      const std::int64_t to = into_word_ + place.tile - skipped;
      Check(to % word_ == 0, "words of the input are none in the tile");
      const auto words = static_cast<std::uint32_t>((skipped + box_.load.row_bytes + word_ - 1) / word_);
      const std::uint32_t last = EndOfSegment(box_.load, place, words);
      for (std::uint32_t word = place.first_word; word < last; ++word) {
        const std::int64_t byte = word * word_;
        if (whole || (word > 0 && word + 1 < words)) {
          Fill(to + byte, row - skipped + byte, word_);
          continue;
        }
        for (std::int64_t i = byte; i < byte + word_; i += case_.element_bytes) {
          if (i < skipped || i >= skipped + box_.load.row_bytes) continue;
          Fill(to + i, row - skipped + i, case_.element_bytes);
        }
      }
    }
  }

  void Store(std::int64_t base, std::vector<std::int64_t>& out) {
    const BoxRows& rows = box_.store;
    const std::int64_t size = case_.element_bytes, per_word = word_ / size;
    const GatherTable& gather = box_.gather;
    for (std::uint32_t index = 0; index < rows.count; ++index) {
      const RowPlace place = LocateRow(rows, index);
      const std::int64_t row = base + place.offset, skipped = row % word_;
      const RowEnds ends = EndsOf(skipped);
      const std::uint32_t end = EndOfSegment(rows, place, ends.end_word);
      const bool stepwise = gather.rank == 0 || (gather.inner_words && skipped == 0);
      for (std::uint32_t word = std::max(place.first_word, ends.first_word); word < end; ++word) {
        const auto first = static_cast<std::uint32_t>((word * word_ - skipped) / size);
        for (std::uint32_t i = 0; i < per_word; ++i) {
          const std::uint32_t step = TableEntry(gather, first + i);
          Check(!stepwise || step == TableEntry(gather, first) + i * gather.inner_stride,
                "a word leaves its axis");
          Check(gather.rank == 0 || first % gather.period.divisor + i < box_.table_entries,
                "the table is too short");
          Move(place.tile + step, row + (first + i) * size, out);
        }
      }
    }
    const bool has_ends = word_ > size && (!rows.aligned || base % word_ != 0);
    for (std::uint32_t index = 0; index < (has_ends ? rows.row_count : 0); ++index) {
      const RowPlace place = LocateRow(rows, index);
      const std::int64_t row = base + place.offset;
      const RowEnds ends = EndsOf(row % word_);
      Check(place.first_word == 0 && ends.head < per_word && ends.count - ends.tail < per_word,
            "ends are longer than a word");
      for (std::uint32_t i = 0; i < ends.count; ++i) {
        if (i < ends.head || i >= ends.tail) Move(place.tile + TableEntry(gather, i), row + i * size, out);
      }
    }
  }

  RowEnds EndsOf(std::int64_t skipped) const {
    if (case_.element_bytes == 1) {
      return EndsOfRow<1>(box_.store.row_bytes, static_cast<std::uint32_t>(skipped));
    }
    if (case_.element_bytes == 2) {
      return EndsOfRow<2>(box_.store.row_bytes, static_cast<std::uint32_t>(skipped));
    }
    RowEnds ends;
    ends.end_word = box_.store.words;
    return ends;
  }

  // From a place in the tile to an address.
  void Move(std::int64_t from, std::int64_t address, std::vector<std::int64_t>& out) {
    const std::int64_t at = into_word_ + from, to = address - case_.out_base, size = case_.element_bytes;
    if (!Check(at + size <= std::ssize(tile_), "reads outside the tile") ||
        !Check(to >= 0 && to + size <= std::ssize(out), "writes outside")) {
      return;
    }
    for (std::int64_t byte = 0; byte < size; ++byte) {
      Check(out[to + byte] == -1 || out[to + byte] == tile_[at + byte], "two values for an element");
      out[to + byte] = tile_[at + byte];
    }
  }

  const Case case_;
  const PackedBox box_;
  const std::int64_t word_;
  std::vector<std::int64_t> tile_;  // addresses of the bytes in it; -1: none yet
  std::int64_t into_word_ = 0;      // how far the box begins into a word
  std::string failure_;
};

void ExpectMovesAll(const Case& c) {
  std::vector<std::int64_t> want;
  for (std::int64_t element : Gather(c.problem)) {
    for (int byte = 0; byte < c.element_bytes; ++byte) {
      want.push_back(c.in_base + element * c.element_bytes + byte);
    }
  }
  std::vector<std::int64_t> got(want.size(), -1);
  ASSERT_EQ(Emulator(c).Run(got), "") << Describe(c);
  ASSERT_TRUE(got == want) << Describe(c);
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
  for (int i = 0; i < 500; ++i) {
    const int rank = 1 + static_cast<int>(below(6));
    std::vector<std::int64_t> dims(rank);
    std::int64_t count = 1;
    for (std::int64_t& dim : dims) {
      dim = std::min<std::int64_t>(1 + below(below(3) == 0 ? 200 : 12), 20000 / count);
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
      if (element_bytes > 4 && c.problem.shape.Count() > 20000) continue;  // like 4, but slow to emulate
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
