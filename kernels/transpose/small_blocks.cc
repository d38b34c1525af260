#include "kernels/transpose/small_blocks.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "kernels/ceil_div.h"

namespace warpline {
namespace {

constexpr std::int64_t kMaxBytes = std::int64_t{kWordsOfBox} * kBlockThreads * kBlockWord;
// Maximum bytes of a tile, so that two boxes fit. Together they use the shared memory of a kernel without
// opt-in, minus the kernel's static shared memory.
constexpr std::int64_t kMaxTile = ((48 << 10) - std::int64_t{kBoxesInTurn} * sizeof(BlocksAt)) / 2 / 16 * 16;
constexpr std::int64_t kMinPadEvery = 32;
static_assert(kMaxBytes + kMaxBytes / kMinPadEvery * kBlockWord <= kMaxTile);

// Returns how many of the innermost axes form a block. These axes are the same in input and output,
// contiguous, and as many as fit into a box. 0: none.
int AxesOfBlock(const CanonicalTranspose& transpose, int element_bytes) {
  const int rank = transpose.rank;
  int block = 0;
  std::int64_t stride = 1;
  int outermost = rank;  // of the axes at the end of the output
  for (int axes = 1; axes <= rank; ++axes) {
    const int axis = rank - axes;
    if (transpose.in_strides[axis] != stride) break;
    stride *= transpose.dims[axis];
    if (stride * element_bytes > kMaxBytes) break;
    outermost = std::min(outermost, transpose.perm[axis]);
    if (outermost == axis) block = axes;
  }
  return block;
}

// Returns how many different words one bank must deliver, averaged over accesses of some warps whose lanes
// gather words that are contiguous in the output.
double ConflictsOf(const SmallBlocks& blocks, int element_bytes) {
  constexpr std::uint32_t kLanes = 32, kBanks = 32, kMaxWarps = 3;
  const auto per_word = static_cast<std::uint32_t>(kBlockWord / element_bytes);
  const std::uint32_t all_warps = blocks.box_bytes / (kLanes * kBlockWord);
  const std::uint32_t warps = std::min(kMaxWarps, all_warps);
  if (warps == 0) return 1;
  std::uint32_t total = 0;
  for (std::uint32_t access = 0; access < warps * per_word; ++access) {
    const std::uint32_t warp = access / per_word * (all_warps / warps);
    std::array<std::array<std::uint32_t, kLanes>, kBanks> words;
    std::array<std::uint32_t, kBanks> count{};
    std::uint32_t most = 0;
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
      const std::uint32_t element = (warp * kLanes + lane) * per_word + access % per_word;
      const std::uint32_t word =
          blocks.PlaceOfElement(element, static_cast<std::uint32_t>(element_bytes)) / kBlockWord;
      auto& of_bank = words[word % kBanks];
      std::uint32_t& seen = count[word % kBanks];
      if (std::find(of_bank.begin(), of_bank.begin() + seen, word) != of_bank.begin() + seen) continue;
      of_bank[seen++] = word;
      most = std::max(most, seen);
    }
    total += most;
  }
  return static_cast<double>(total) / (warps * per_word);
}

void PadEvery(std::int64_t bytes, SmallBlocks& blocks) {
  blocks.pad_every = static_cast<std::uint32_t>(bytes);
  if (bytes > 0) blocks.pad_divisor = FastDivisor(bytes);
  blocks.tile_bytes = (blocks.PlaceOf(blocks.box_bytes - 1) / 16 + 1) * 16;
}

// Pads the box if it has bank conflicts. Chooses the distance between paddings, in bytes or in rows of the
// input, that leaves the fewest conflicts. Returns how many are left.
double PadForBanks(std::int64_t row_bytes, int element_bytes, SmallBlocks& blocks) {
  PadEvery(0, blocks);
  SmallBlocks padded = blocks;
  constexpr double kNegligible = 1.1;
  double least = ConflictsOf(blocks, element_bytes);
  for (std::int64_t bytes :
       {std::int64_t{256}, std::int64_t{128}, std::int64_t{64}, kMinPadEvery, row_bytes}) {
    if (least <= kNegligible) break;
    if (bytes < kMinPadEvery || bytes % kBlockWord != 0) continue;
    PadEvery(bytes, padded);
    const double conflicts = ConflictsOf(padded, element_bytes);
    if (conflicts >= least) continue;
    least = conflicts;
    blocks = padded;
  }
  return least;
}

}  // namespace

std::optional<SmallBlocks> PlanSmallBlocks(const CanonicalTranspose& transpose, std::size_t element_size,
                                           const DeviceTraits& traits, const void* in, const void* out) {
  // Measured on an H200 (docs/benchmarks/2026-11-26-h200-planes.md). A CTA computes the positions of elements
  // in the time that one box takes. CTAs that have one box more than others should not take much longer. A
  // smaller box is finished before the next one is loaded.
  constexpr std::int64_t kMinBoxesEach = 8;
  const std::int64_t least_bytes = element_size == 1 ? 3 << 10 : 8 << 10;
  constexpr double kMaxConflicts = 3;
  const auto bases = reinterpret_cast<std::uintptr_t>(in) | reinterpret_cast<std::uintptr_t>(out);
  if (element_size > kBlockWord || bases % kBlockWord != 0) return std::nullopt;
  const auto element_bytes = static_cast<int>(element_size);
  const int rank = transpose.rank, axes = AxesOfBlock(transpose, element_bytes), outer = rank - axes;
  if (axes < 2) return std::nullopt;
  SmallBlocks blocks;
  std::int64_t block = 1;
  for (int i = rank - 1; i >= outer; --i) {
    const int axis = transpose.perm[i];
    block *= transpose.dims[axis];
    blocks.elements.Append(transpose.dims[axis], transpose.in_strides[axis]);
  }
  blocks.block = FastDivisor(block);
  // Blocks that are contiguous in both input and output.
  const int next = outer - 1;
  const bool follow = outer > 0 && transpose.perm[next] == next && transpose.in_strides[next] == block;
  const std::int64_t count = follow ? transpose.dims[next] : 1, block_bytes = block * element_bytes;
  const std::int64_t fit = kMaxBytes / block_bytes;
  std::int64_t of_box = std::min(count, fit);
  if (of_box < count) {
    // Prefer boxes that begin at sector boundaries, otherwise at word boundaries.
    for (std::int64_t begin : {32, kBlockWord}) {
      const std::int64_t multiple = begin / std::gcd(begin, block_bytes);
      of_box = fit / multiple * multiple;
      if (2 * of_box >= fit) break;
    }
  }
  if (of_box * block_bytes < least_bytes) return std::nullopt;
  const Strides out_strides = transpose.OutputStrides();
  for (int axis = 0; axis < outer; ++axis) {
    if (follow && axis == next) continue;
    const std::int64_t in_stride = transpose.in_strides[axis] * element_bytes;
    const std::int64_t out_stride = out_strides[axis] * element_bytes;
    if ((in_stride | out_stride) % kBlockWord != 0) return std::nullopt;
    blocks.walk.Append(transpose.dims[axis], in_stride, out_stride);
  }
  blocks.box_bytes = static_cast<std::uint32_t>(of_box * block_bytes);
  const std::int64_t in_row = CeilDiv(count, of_box);
  blocks.last_bytes = static_cast<std::uint32_t>((count - (in_row - 1) * of_box) * block_bytes);
  blocks.walk.Append(in_row, blocks.box_bytes, blocks.box_bytes);
  blocks.boxes = blocks.walk.Count();
  if (blocks.boxes < kMinBoxesEach * kBlockCtas * traits.multiprocessors) return std::nullopt;
  const std::int64_t row_bytes = transpose.dims[rank - 1] * element_bytes;
  if (PadForBanks(row_bytes, element_bytes, blocks) > kMaxConflicts) return std::nullopt;
  return blocks;
}

}  // namespace warpline
