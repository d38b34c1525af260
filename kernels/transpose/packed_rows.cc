#include "kernels/transpose/packed_rows.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "kernels/ceil_div.h"

namespace warpline {
namespace {

constexpr std::uint32_t kWarp = 32;
constexpr int kBanks = 32;
constexpr std::uint32_t kMaxPeriod = 2048;
// Words per lane in a segment. With more words, locating the segment costs less per word, but there must be
// enough segments for all lanes.
constexpr std::uint32_t kWordsPerLane[] = {3, 4, 5, 6, 8};
// Costs in issue slots of a multiprocessor, four per cycle: to locate a segment, and for each of its axes;
// for each word to load or store; for each element to gather; for each lookup of a position; and for an
// access without conflicts.
constexpr double kSegmentSlots = 14, kAxisSlots = 10, kWordSlots = 8, kGatherSlots = 2, kLookupSlots = 6;
constexpr double kAccessSlots = 4;
// A warp's access of global memory takes half a cycle for each line that it touches, and the same for each
// unneeded sector.
constexpr std::int64_t kLineBytes = 128, kSectorBytes = 32;
constexpr double kLineSlots = 2, kSectorSlots = 2;

// Adds the axes that walk over rows. Axes that are contiguous in both memories are merged.
void AddRowAxes(const std::vector<BoxAxis>& axes, bool of_output, BoxRows& rows) {
  std::vector<BoxAxis> merged;
  auto stride = [of_output](const BoxAxis& axis) { return of_output ? axis.out_stride : axis.in_stride; };
  for (const BoxAxis& axis : axes) {
    if (axis.size == 1) continue;
    if (!merged.empty() && stride(axis) == stride(merged.back()) * merged.back().size &&
        axis.tile_stride == merged.back().tile_stride * merged.back().size) {
      merged.back().size *= axis.size;
    } else {
      merged.push_back(axis);
    }
  }
  for (const BoxAxis& axis : merged) {
    RowAxis& added = rows.axes[rows.rank++];
    added.size = FastDivisor(axis.size);
    added.stride = stride(axis);
    added.tile_stride = static_cast<std::uint32_t>(axis.tile_stride);
  }
}

// Computes the values that follow from the axes and the length of rows. Returns the maximum number of words
// that a row touches.
std::uint32_t CompleteRows(int element_bytes, BoxRows& rows) {
  const auto word = static_cast<std::uint32_t>(PackedWordBytes(element_bytes));
  rows.row_count = 1;
  rows.aligned = rows.row_bytes % word == 0;
  for (int i = 0; i < rows.rank; ++i) {
    rows.row_count *= rows.axes[i].size.divisor;
    rows.aligned = rows.aligned && rows.axes[i].stride % word == 0;
  }
  const std::uint32_t skipped = rows.aligned ? 0 : word - static_cast<std::uint32_t>(element_bytes);
  return (skipped + rows.row_bytes + word - 1) / word;
}

// Lets 2^lanes_log2 lanes share a row of `words` words, with up to `per_lane` words each.
void Share(std::uint32_t words, int lanes_log2, std::uint32_t per_lane, BoxRows& rows) {
  const std::uint32_t lanes = 1u << lanes_log2;
  const auto segments = static_cast<std::uint32_t>(CeilDiv(words, per_lane * lanes));
  const auto passes = static_cast<std::uint32_t>(CeilDiv(CeilDiv(words, segments), lanes));
  rows.words = words;
  rows.segment_words = passes * lanes;
  rows.one_segment = rows.segment_words >= words;
  rows.count = rows.row_count * static_cast<std::uint32_t>(CeilDiv(words, rows.segment_words));
  rows.lanes_log2 = static_cast<std::uint32_t>(lanes_log2);
}

// Returns the issue slots of a CTA if a pass over a warp's words takes `pass_slots`.
double SlotsOf(const BoxRows& rows, double pass_slots) {
  const auto rounds = static_cast<double>(CeilDiv(rows.count, kPackedThreads >> rows.lanes_log2));
  const std::uint32_t passes = rows.segment_words >> rows.lanes_log2;
  constexpr int kWarps = kPackedThreads / kWarp;
  return rounds * kWarps * (kSegmentSlots + kAxisSlots * rows.rank + passes * pass_slots);
}

// Tries several numbers of words per lane in a segment, and keeps the best.
void Refine(BoxRows rows, double pass_slots, int conflicts, PlannedRows& best) {
  for (std::uint32_t per_lane : kWordsPerLane) {
    Share(rows.words, static_cast<int>(rows.lanes_log2), per_lane, rows);
    const double cost = SlotsOf(rows, pass_slots);
    if (cost < best.cost) best = {.rows = rows, .cost = cost, .conflicts = conflicts};
  }
}

// Calls function(lane, place, word) for the lanes of the second warp: the first row may be better aligned
// than the others.
template <typename Function>
void ForLanes(const BoxRows& rows, Function function) {
  const std::uint32_t lanes = 1u << rows.lanes_log2;
  for (std::uint32_t lane = 0; lane < kWarp; ++lane) {
    const RowPlace place = LocateRow(rows, (kWarp + lane) / lanes % rows.count);
    function(lane, place, place.first_word + lane % lanes);
  }
}

// Returns the issue slots of a warp's access of global memory.
double GlobalSlots(const BoxRows& rows, int element_bytes) {
  const std::int64_t word_bytes = PackedWordBytes(element_bytes);
  std::int64_t last_line = -1, last_sector = -1;
  int lines = 0, sectors = 0, words = 0;
  ForLanes(rows, [&](std::uint32_t, const RowPlace& place, std::uint32_t word) {
    if (word >= rows.words) return;
    ++words;
    const std::int64_t from = place.offset + word * word_bytes;
    for (std::int64_t byte : {from, from + word_bytes - 1}) {
      lines += byte / kLineBytes != last_line ? 1 : 0;
      sectors += byte / kSectorBytes != last_sector ? 1 : 0;
      last_line = byte / kLineBytes;
      last_sector = byte / kSectorBytes;
    }
  });
  const double needed = static_cast<double>(words * word_bytes) / kSectorBytes;
  return std::max(kAccessSlots, kLineSlots * lines) + kSectorSlots * std::max(0.0, sectors - needed);
}

// Returns how many different words the busiest bank must deliver when lanes gather their first elements. The
// lanes are those of a warp, or fewer, if words are wide, so that they access 128 bytes.
int GatherConflicts(const BoxRows& rows, const GatherTable& table, int element_bytes) {
  const auto per_word = static_cast<std::uint32_t>(PackedWordBytes(element_bytes) / element_bytes);
  const std::uint32_t lanes = kWarp * 4 / static_cast<std::uint32_t>(PackedWordBytes(element_bytes));
  std::array<std::uint32_t, kWarp> words{};
  std::array<int, kBanks> load{};
  int most = 0;
  ForLanes(rows, [&](std::uint32_t lane, const RowPlace& place, std::uint32_t word) {
    if (lane >= lanes || word >= rows.words) return;
    words[lane] = (place.tile + TableEntry(table, word * per_word)) / 4 + 1;
    if (std::find(words.begin(), words.begin() + lane, words[lane]) != words.begin() + lane) return;
    most = std::max(most, ++load[words[lane] % kBanks]);
  });
  return most;
}

// Finds the best number of lanes for rows that are otherwise complete.
PlannedRows ShareStores(BoxRows rows, const GatherTable& table, int element_bytes) {
  const std::uint32_t words = CompleteRows(element_bytes, rows);
  const int per_word = PackedWordBytes(element_bytes) / element_bytes;
  PlannedRows best{.rows = {}, .cost = std::numeric_limits<double>::infinity()};
  for (int lanes_log2 = 5; lanes_log2 >= 0; --lanes_log2) {
    Share(words, lanes_log2, kWordsPerLane[0], rows);
    const int conflicts = GatherConflicts(rows, table, element_bytes);
    double slots =
        kWordSlots + GlobalSlots(rows, element_bytes) + per_word * (kGatherSlots + kAccessSlots * conflicts);
    if (table.rank > 0) {
      slots += kLookupSlots + (table.inner_words ? 1 : per_word) * kAccessSlots;
    }
    Refine(rows, slots, conflicts, best);
    if (conflicts <= 1 && words >= 1u << lanes_log2) break;  // fewer lanes would only touch more lines
  }
  return best;
}

}  // namespace

PlannedRows PlanLoads(const std::vector<BoxAxis>& axes, std::size_t dense, int element_bytes) {
  BoxRows rows;
  rows.row_bytes = static_cast<std::uint32_t>(element_bytes);
  for (std::size_t i = 0; i < dense; ++i) rows.row_bytes *= static_cast<std::uint32_t>(axes[i].size);
  AddRowAxes({axes.begin() + static_cast<std::ptrdiff_t>(dense), axes.end()}, /*of_output=*/false, rows);
  const std::uint32_t words = CompleteRows(element_bytes, rows);
  PlannedRows best{.rows = {}, .cost = std::numeric_limits<double>::infinity()};
  for (int lanes_log2 = 5; lanes_log2 >= 0; --lanes_log2) {
    Share(words, lanes_log2, kWordsPerLane[0], rows);
    Refine(rows, kWordSlots + kAccessSlots + GlobalSlots(rows, element_bytes), /*conflicts=*/1, best);
    if (words >= 2u << lanes_log2) break;
  }
  return best;
}

PlannedRows PlanStores(const std::vector<BoxAxis>& axes, const std::vector<int>& order, int element_bytes,
                       GatherTable& table) {
  // The axes of the output's run. Axes that are also contiguous in shared memory are merged.
  std::vector<BoxAxis> run;
  for (int axis : order) {
    const BoxAxis& next =
        *std::find_if(axes.begin(), axes.end(), [axis](const BoxAxis& a) { return a.axis == axis; });
    if (next.size == 1) continue;
    if (!run.empty() && next.tile_stride == run.back().tile_stride * run.back().size) {
      run.back().size *= next.size;
    } else {
      run.push_back(next);
    }
  }
  // The other axes, in the order of shared memory, so that lanes of neighbouring rows share words there.
  std::vector<BoxAxis> others;
  for (const BoxAxis& axis : axes) {
    if (std::find(order.begin(), order.end(), axis.axis) == order.end()) others.push_back(axis);
  }

  // Rows along only the innermost axis need no table. Rows along the whole run are fewer and longer.
  PlannedRows best{.rows = {}, .cost = std::numeric_limits<double>::infinity()};
  for (std::size_t in_row : {std::min<std::size_t>(1, run.size()), run.size()}) {
    BoxRows rows;
    GatherTable candidate;
    std::int64_t elements = 1, period = 1;
    for (std::size_t i = 0; i < in_row; ++i) {
      period = elements;
      elements *= run[i].size;
      candidate.outer_stride = static_cast<std::uint32_t>(run[i].tile_stride);
      if (i + 1 == in_row) break;
      candidate.sizes[i] = FastDivisor(run[i].size);
      candidate.strides[i] = static_cast<std::uint32_t>(run[i].tile_stride);
      ++candidate.rank;
    }
    if (period > kMaxPeriod) continue;
    if (in_row > 0) {
      candidate.period = FastDivisor(period);
      candidate.inner_stride = static_cast<std::uint32_t>(run[0].tile_stride);
      candidate.inner_words = run[0].size * element_bytes % PackedWordBytes(element_bytes) == 0;
    }
    rows.row_bytes = static_cast<std::uint32_t>(elements * element_bytes);
    std::vector<BoxAxis> walked = others;
    walked.insert(walked.end(), run.begin() + static_cast<std::ptrdiff_t>(in_row), run.end());
    AddRowAxes(walked, /*of_output=*/true, rows);
    const PlannedRows planned = ShareStores(rows, candidate, element_bytes);
    if (planned.cost < best.cost) {
      best = planned;
      table = candidate;
    }
    if (in_row == run.size()) break;
  }
  return best;
}

}  // namespace warpline
