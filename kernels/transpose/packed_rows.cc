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
// Rows of the output of so many bytes are long enough to be stored one by one, without a table.
constexpr std::int64_t kLongRow = 128;
// Words of a lane in a segment: enough to share the work of finding it.
constexpr std::uint32_t kWordsPerLane = 4;
// Issue slots of a multiprocessor, four a cycle: to find a segment, and then for each of its axes; of a word to
// load or store; of an element to gather; and of an access of shared memory without conflicts.
constexpr double kSegmentSlots = 14, kAxisSlots = 8, kWordSlots = 8, kGatherSlots = 2, kAccessSlots = 4;

// Axes that walk over rows, those merged that are one in both memories.
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

std::uint32_t RowCount(const BoxRows& rows) {
  std::uint32_t count = 1;
  for (int i = 0; i < rows.rank; ++i) count *= rows.axes[i].size.divisor;
  return count;
}

// The most words of a row: where rows may begin anywhere in a word, one more than it would fill.
std::uint32_t WordsOfRow(const BoxRows& rows, int element_bytes) {
  const auto word = static_cast<std::uint32_t>(PackedWordBytes(element_bytes));
  bool aligned = rows.row_bytes % word == 0;
  for (int i = 0; i < rows.rank; ++i) aligned = aligned && rows.axes[i].stride % word == 0;
  return rows.row_bytes / word + (aligned ? 0 : 2);
}

// Lets 2^lanes_log2 lanes share a row. Returns the issue slots, if a word takes `word_slots`.
double Share(std::uint32_t words, int lanes_log2, double word_slots, BoxRows& rows) {
  const std::uint32_t lanes = 1u << lanes_log2;
  const auto segments = static_cast<std::uint32_t>(CeilDiv(words, kWordsPerLane * lanes));
  const auto passes = static_cast<std::uint32_t>(CeilDiv(CeilDiv(words, segments), lanes));
  rows.words = words;
  rows.segments = FastDivisor(segments);
  rows.segment_words = passes * lanes;
  rows.count = RowCount(rows) * segments;
  rows.lanes_log2 = static_cast<std::uint32_t>(lanes_log2);
  const double rounds = static_cast<double>(CeilDiv(rows.count, kPackedThreads / lanes));
  return rounds * (kPackedThreads / kWarp) * (kSegmentSlots + kAxisSlots * rows.rank + passes * word_slots);
}

// How many different words the most frequented bank has to deliver to a warp, or to as many lanes of it as
// take 128 bytes, if lane i reads at place[i].
int Conflicts(const std::array<std::uint32_t, kWarp>& places, int element_bytes) {
  const int lanes = static_cast<int>(kWarp) * 4 / PackedWordBytes(element_bytes);
  std::array<std::uint32_t, kWarp> words{};
  std::array<int, kBanks> load{};
  int most = 0;
  for (int i = 0; i < lanes; ++i) {
    words[i] = places[i] / 4;
    if (std::find(words.begin(), words.begin() + i, words[i]) != words.begin() + i) continue;
    most = std::max(most, ++load[words[i] % kBanks]);
  }
  return most;
}

// Of the first word of each of the lanes of the first warp.
int GatherConflicts(const BoxRows& rows, const GatherTable& table, int element_bytes) {
  const auto per_word = static_cast<std::uint32_t>(PackedWordBytes(element_bytes) / element_bytes);
  const std::uint32_t lanes = 1u << rows.lanes_log2;
  std::array<std::uint32_t, kWarp> places{};
  for (std::uint32_t lane = 0; lane < kWarp; ++lane) {
    const RowPlace place = LocateRow(rows, lane / lanes % rows.count);
    places[lane] = place.tile + TableEntry(table, (place.first_word + lane % lanes) * per_word);
  }
  return Conflicts(places, element_bytes);
}

}  // namespace

PlannedRows PlanLoads(const std::vector<BoxAxis>& axes, std::size_t dense, int element_bytes) {
  BoxRows rows;
  rows.row_bytes = static_cast<std::uint32_t>(element_bytes);
  for (std::size_t i = 0; i < dense; ++i) rows.row_bytes *= static_cast<std::uint32_t>(axes[i].size);
  AddRowAxes({axes.begin() + static_cast<std::ptrdiff_t>(dense), axes.end()}, /*of_output=*/false, rows);
  const std::uint32_t words = WordsOfRow(rows, element_bytes);
  PlannedRows best{.rows = {}, .cost = std::numeric_limits<double>::infinity()};
  for (int lanes_log2 = 5; lanes_log2 >= 0; --lanes_log2) {
    const double cost = Share(words, lanes_log2, kWordSlots + kAccessSlots, rows);
    if (cost < best.cost) best = {.rows = rows, .cost = cost};
  }
  return best;
}

PlannedRows PlanStores(const std::vector<BoxAxis>& axes, const std::vector<int>& order, int element_bytes,
                       GatherTable& table) {
  // The axes of the output's run, those merged that are one in shared memory, too.
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
  const int word = PackedWordBytes(element_bytes);
  std::int64_t period = 1;
  for (std::size_t i = 0; i + 1 < run.size(); ++i) period *= run[i].size;
  const std::int64_t inner_bytes = run.empty() ? 0 : run[0].size * element_bytes;
  const bool long_rows = inner_bytes >= kLongRow && inner_bytes % word == 0;
  std::vector<BoxAxis> walked;
  BoxRows rows;
  rows.row_bytes = static_cast<std::uint32_t>(element_bytes);
  table = {};
  if (run.size() > 1 && (long_rows || period > kMaxPeriod)) {
    walked.assign(run.begin() + 1, run.end());
    run.resize(1);
  }
  for (const BoxAxis& axis : run) rows.row_bytes *= static_cast<std::uint32_t>(axis.size);
  if (!run.empty()) {
    table.inner_stride = static_cast<std::uint32_t>(run[0].tile_stride);
    table.outer_stride = static_cast<std::uint32_t>(run.back().tile_stride);
    table.inner_words = run[0].size * element_bytes % word == 0;
    table.rank = static_cast<int>(run.size()) - 1;
    std::int64_t entries = 1;
    for (int i = 0; i < table.rank; ++i) {
      table.sizes[i] = FastDivisor(run[i].size);
      table.strides[i] = static_cast<std::uint32_t>(run[i].tile_stride);
      entries *= run[i].size;
    }
    table.period = FastDivisor(entries);
  }
  // The rest in the order of shared memory, so that lanes of neighbouring rows share words there.
  std::vector<BoxAxis> others;
  for (const BoxAxis& axis : axes) {
    if (std::find(order.begin(), order.end(), axis.axis) == order.end()) others.push_back(axis);
  }
  others.insert(others.end(), walked.begin(), walked.end());
  AddRowAxes(others, /*of_output=*/true, rows);

  const std::uint32_t words = WordsOfRow(rows, element_bytes);
  const int per_word = word / element_bytes;
  const bool has_table = table.rank > 0;
  PlannedRows best{.rows = {}, .cost = std::numeric_limits<double>::infinity()};
  for (int lanes_log2 = 5; lanes_log2 >= 0; --lanes_log2) {
    Share(words, lanes_log2, 0, rows);
    const int conflicts = GatherConflicts(rows, table, element_bytes);
    // Where rows begin anywhere, what a few lanes store touches nearly twice as many sectors.
    const double lanes_bytes = static_cast<double>(word << lanes_log2);
    bool sectors = true;
    for (int i = 0; i < rows.rank; ++i) sectors = sectors && rows.axes[i].stride % 32 == 0;
    const double touched = sectors ? 1 : (lanes_bytes + 28) / lanes_bytes;
    const double slots = kWordSlots + kAccessSlots * touched +
                         per_word * (kGatherSlots + kAccessSlots * conflicts) +
                         (has_table ? kGatherSlots * 3 + per_word * kAccessSlots : 0);
    const double cost = Share(words, lanes_log2, slots, rows);
    if (cost < best.cost) best = {.rows = rows, .cost = cost};
  }
  return best;
}

}  // namespace warpline
