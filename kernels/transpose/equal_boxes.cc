#include "kernels/transpose/equal_boxes.h"

#include <algorithm>
#include <array>

namespace warpline {
namespace {

constexpr std::int64_t kWord = kEqualBoxWord;
// Maximum shared memory of a kernel without opt-in, and the static shared memory of this kernel.
constexpr std::int64_t kMaxSharedBytes = 48 << 10, kOwnSharedBytes = kBoxesOfCta * sizeof(BoxOrigin);

// Returns whether all boxes begin and end on word boundaries, and the elements of a word are equally far
// apart in shared memory.
bool HasEqualWords(const PackedBox& box, int element_bytes) {
  const bool whole = std::all_of(box.outer, box.outer + box.outer_rank, [](const OuterAxis& axis) {
    return axis.block * axis.in_stride % kWord == 0 && axis.last * axis.in_stride % kWord == 0 &&
           axis.block * axis.out_stride % kWord == 0 && axis.last * axis.out_stride % kWord == 0;
  });
  return box.load.aligned && box.store.aligned && whole && (element_bytes == kWord || box.gather.inner_words);
}

// Returns whether offsets within a box fit into 32 bits.
bool IsCompact(const BoxRows& rows) {
  std::int64_t bytes = rows.row_bytes;
  for (int i = 0; i < rows.rank; ++i) bytes += (rows.axes[i].size.divisor - 1) * rows.axes[i].stride;
  return bytes < std::int64_t{1} << 32;
}

// Returns how many different words one bank must deliver, averaged over some warps whose lanes gather words
// that are contiguous in the output.
double ConflictsOf(const PackedBox& box, int element_bytes) {
  constexpr std::uint32_t kLanes = 32, kBanks = 32, kMaxWarps = 16;
  const std::uint32_t words = box.store.row_count * box.store.words;
  const auto per_word = static_cast<std::uint32_t>(kWord / element_bytes);
  const std::uint32_t warps = std::min(kMaxWarps, words / kLanes);
  if (warps == 0) return 1;
  int total = 0;
  for (std::uint32_t warp = 0; warp < warps; ++warp) {
    std::array<std::uint32_t, kLanes> seen{};
    std::array<int, kBanks> load{};
    int most = 0;
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
      const std::uint32_t word = warp * kLanes + lane;
      const std::uint32_t place = RowOfBox(box.store, word / box.store.words).tile +
                                  TableEntry(box.gather, word % box.store.words * per_word);
      seen[lane] = place / kWord + 1;
      if (std::find(seen.begin(), seen.begin() + lane, seen[lane]) != seen.begin() + lane) continue;
      most = std::max(most, ++load[place / kWord % kBanks]);
    }
    total += most;
  }
  return static_cast<double>(total) / warps;
}

}  // namespace

bool SuitEqualBoxes(const PackedBox& box, int element_bytes, int multiprocessors) {
  // Measured on an H200 (docs/benchmarks/history.md#2026-11-25-permutes). A CTA computes the positions of its
  // words in the time that one box takes. CTAs that have one box more than others should not take much
  // longer.
  constexpr std::int64_t kMinBoxesEach = 8;
  // Per warp's words. If a word has two 16-bit elements, the other kernel locates it twice; equal boxes save
  // that in any case.
  const double least_slots = element_bytes == 2 ? 48 : 64;
  constexpr double kMaxConflicts = 3;
  const std::int64_t loaded = std::int64_t{box.load.row_count} * box.load.row_bytes;
  const std::int64_t stored = std::int64_t{box.store.row_count} * box.store.row_bytes;
  constexpr std::int64_t kWarpBytes = 128;
  return element_bytes <= kWord && std::max(loaded, stored) <= kEqualBoxBytes &&
         2 * std::int64_t{box.tile_bytes} + kOwnSharedBytes <= kMaxSharedBytes &&
         box.boxes >= kMinBoxesEach * kEqualBoxCtas * multiprocessors && HasEqualWords(box, element_bytes) &&
         IsCompact(box.load) && IsCompact(box.store) &&
         box.issue_slots * kWarpBytes >= least_slots * static_cast<double>(stored) &&
         ConflictsOf(box, element_bytes) <= kMaxConflicts;
}

}  // namespace warpline
