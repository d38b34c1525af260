#include "kernels/transpose/plan.h"

#include <algorithm>
#include <optional>

#include "kernels/ceil_div.h"
#include "kernels/fast_divisor.h"
#include "kernels/transpose/channel_words.h"
#include "kernels/transpose/channels.h"
#include "kernels/transpose/swizzle.h"

namespace warpline {
namespace {

// Returns the size in bytes of the widest elements into which rows and both base addresses can be divided,
// for a transposition that keeps rows.
std::size_t RowElementBytes(const CanonicalTranspose& transpose, std::size_t element_bytes, const void* in,
                            const void* out) {
  std::uint64_t offsets = reinterpret_cast<std::uintptr_t>(in) | reinterpret_cast<std::uintptr_t>(out) |
                          kChunkBytes |
                          static_cast<std::uint64_t>(transpose.dims[transpose.rank - 1]) * element_bytes;
  for (int axis = 0; axis + 1 < transpose.rank; ++axis) {
    offsets |= static_cast<std::uint64_t>(transpose.in_strides[axis]) * element_bytes;
  }
  return offsets & -offsets;
}

// Returns the distance from the first element of the input to after the last one, including gaps.
std::int64_t InputExtent(const CanonicalTranspose& transpose) {
  std::int64_t last = 0;
  for (int axis = 0; axis < transpose.rank; ++axis) {
    last += (transpose.dims[axis] - 1) * transpose.in_strides[axis];
  }
  return last + 1;
}

// Returns the length in bytes of the shortest rows for which copying rows pays off, for elements of this
// size. With wide elements, boxes are not slow either. Based on 217 permutes on an H200
// (docs/benchmarks/history.md#2026-11-25-drawn-problems).
std::size_t ShortestRow(std::size_t element_bytes) {
  constexpr std::size_t kNarrow = 48, kWide = 88, kVector = 96;
  switch (element_bytes) {
    case 2:
      return kChunkBytes;
    case 8:
      return kWide;
    case 16:
      return kVector;
    default:
      return kNarrow;
  }
}

// Offsets must fit into 31 bits, and vectors of the output must be aligned. Otherwise boxes handle rows too.
bool CanCopyRows(const CanonicalTranspose& transpose, std::size_t element_bytes, const void* out) {
  std::int64_t count = 1;
  for (int axis = 0; axis < transpose.rank; ++axis) count *= transpose.dims[axis];
  const auto row_bytes = static_cast<std::size_t>(transpose.dims[transpose.rank - 1]) * element_bytes;
  return reinterpret_cast<std::uintptr_t>(out) % kChunkBytes == 0 && row_bytes >= kChunkBytes &&
         std::max(count, InputExtent(transpose)) < FastDivisor::kMax;
}

bool SuitRowCopy(const CanonicalTranspose& transpose, std::size_t element_bytes, const void* out) {
  const auto row_bytes = static_cast<std::size_t>(transpose.dims[transpose.rank - 1]) * element_bytes;
  return row_bytes >= ShortestRow(element_bytes) && CanCopyRows(transpose, element_bytes, out);
}

// Returns whether both sides are multiples of 16 bytes.
bool CanTile(const TileWalk& walk, std::size_t element_bytes, const void* in, const void* out) {
  const auto bases = reinterpret_cast<std::uintptr_t>(in) | reinterpret_cast<std::uintptr_t>(out);
  const auto vector = static_cast<std::int64_t>(kChunkBytes / element_bytes);
  // An element of 16 bytes is a vector by itself; boxes have more of them in flight.
  return element_bytes != kChunkBytes && bases % kChunkBytes == 0 && walk.TakesVectors(vector);
}

// Returns whether tiles suit the problem: sides must be so long that the partial tiles at their ends leave
// few lanes idle. For narrow elements the limit is lower, because boxes gather them one by one. For a small
// problem, planning boxes would not pay off.
bool SuitTiles(const TileWalk& walk, std::size_t element_bytes, const void* in, const void* out) {
  if (!CanTile(walk, element_bytes, in, out)) return false;
  const auto vector = static_cast<std::int64_t>(kChunkBytes / element_bytes);
  const std::int64_t side = vector * (element_bytes == 1 ? 8 : 16);
  const double least_fill = element_bytes == 1 ? 0.25 : element_bytes == 2 ? 0.3 : kMinTileFill;
  return FillOf(walk, side, side) >= least_fill || HasFewTiles(walk);
}

// Returns whether vector tiles are so empty that other kernels are faster. For bytes, tiles with sides of
// several axes are faster (u8 6x168x8x767x48 perm 4,3,2,0,1 took 266 us instead of 184). For channels, words
// are faster.
bool LeavesTilesEmpty(const TileWalk& walk, std::size_t element_bytes, bool split_by_words) {
  const double least = split_by_words ? 0.8 : element_bytes == 1 ? 0.6 : 0;
  const std::int64_t side = element_bytes == 1 ? TransposeTile<1, 8>::kTile : TransposeTile<2>::kTile;
  return !HasFewTiles(walk) && FillOf(walk, side, side) < least;
}

// Limits above which odd tiles are faster than boxes, from about 400 permutes, most of them random
// (docs/benchmarks/history.md#2026-11-26-two-tiles). They are the minimum fraction of tiles in use along each
// side; `few_*` and `many_*` apply to sides with few and many tiles. The tiles at both ends along y count
// more, because they write the ends of output rows element by element. For 16-bit elements, the limit for few
// tiles excludes sides of one or two tiles.
struct OddTileLimits {
  double few_x, many_x, few_y, many_y;
  std::int64_t least_many_y = 2;
};

// `joins`: sides consist of several axes.
template <int kBytes>
OddTileLimits LimitsOf(const TileWalk& walk, bool joins) {
  if (kBytes >= 4) return {.few_x = 0.6, .many_x = 0.6, .few_y = 0.58, .many_y = 0.58};
  // Boxes read whole words if the rows of the input are a multiple of words apart.
  const bool by_words = !joins && walk.in_stride_y * kBytes % 4 == 0;
  if (kBytes == 2) {
    const double many_y = joins || by_words ? 0.7 : 0.57;
    return {.few_x = 0.8, .many_x = 0.68, .few_y = 0.69, .many_y = many_y, .least_many_y = 4};
  }
  const double many_y = joins ? 0.65 : by_words ? 0.59 : 0.495;
  return {.few_x = 0.8, .many_x = 0.6, .few_y = 0.61, .many_y = many_y};
}

// Returns whether offsets in a tile fit into 32 bits.
template <int kBytes>
bool HasNearRows(const TileWalk& walk) {
  constexpr std::int64_t kMaxBytes = std::int64_t{1} << 31;
  using Tile = OddTile<kBytes>;
  return walk.in_stride_y < kMaxBytes / (kBytes * (Tile::kRows + 1)) &&
         walk.out_stride_x < kMaxBytes / (kBytes * (Tile::kTileX + 1));
}

template <int kBytes>
bool SuitOddTilesOf(const TileWalk& walk, bool joins) {
  constexpr double kEnd = 0.6;
  // With fewer tiles along y, partial tiles along x waste too much of the grid.
  constexpr std::int64_t kMinTilesY = 5;
  using Tile = OddTile<kBytes>;
  const OddTileLimits limits = LimitsOf<kBytes>(walk, joins);
  const std::int64_t tiles_x = CeilDiv(walk.nx, Tile::kTileX), tiles_y = CeilDiv(walk.ny, Tile::kTileY);
  const auto ends = static_cast<double>(std::min<std::int64_t>(tiles_y, 2));
  const double fill_x = static_cast<double>(walk.nx) / static_cast<double>(tiles_x * Tile::kTileX);
  const double fill_y =
      static_cast<double>(walk.ny) / ((static_cast<double>(tiles_y) + kEnd * ends) * Tile::kTileY);
  return fill_x >= (tiles_x > 1 && tiles_y >= kMinTilesY ? limits.many_x : limits.few_x) &&
         fill_y >= (tiles_y >= limits.least_many_y ? limits.many_y : limits.few_y) &&
         HasNearRows<kBytes>(walk);
}

// Returns sides of several axes, if odd tiles with these sides are faster than boxes.
template <int kBytes>
std::optional<JoinedTiles> JoinSidesOf(const CanonicalTranspose& transpose) {
  using Tile = OddTile<kBytes>;
  std::optional<JoinedTiles> tiles = JoinSides(transpose, kBytes, Tile::kTileX, Tile::kTileY);
  if (!tiles.has_value() || !SuitOddTilesOf<kBytes>(tiles->walk, true)) return std::nullopt;
  // For wide elements, boxes are slower only if the tiles are full, and never if a side is short.
  constexpr double kMinWide = 0.8;
  constexpr std::int64_t kMinRowElements = 2 * Tile::kTileX;
  if (kBytes >= 4 &&
      (tiles->walk.nx < kMinRowElements || FillOf(tiles->walk, Tile::kTileX, Tile::kTileY) < kMinWide)) {
    return std::nullopt;
  }
  return tiles;
}

// Returns sides of several axes, even if they do not fill tiles.
std::optional<JoinedTiles> AnyJoinedTiles(const CanonicalTranspose& transpose, std::size_t element_bytes) {
  return WithOddTileBytes(element_bytes, std::optional<JoinedTiles>(), [&](auto bytes) {
    using Tile = OddTile<bytes()>;
    std::optional<JoinedTiles> tiles = JoinSides(transpose, bytes(), Tile::kTileX, Tile::kTileY);
    if (tiles.has_value() && !HasNearRows<bytes()>(tiles->walk)) tiles.reset();
    return tiles;
  });
}

std::optional<JoinedTiles> SuitedJoinedTiles(const CanonicalTranspose& transpose, std::size_t element_bytes) {
  return WithOddTileBytes(element_bytes, std::optional<JoinedTiles>(),
                          [&](auto bytes) { return JoinSidesOf<bytes()>(transpose); });
}

bool CanTakeOddTiles(const TileWalk& walk, std::size_t element_bytes) {
  if (walk.in_stride_x != 1 || walk.out_stride_y != 1) return false;
  return WithOddTileBytes(element_bytes, false, [&](auto bytes) { return HasNearRows<bytes()>(walk); });
}

bool SuitOddTiles(const TileWalk& walk, std::size_t element_bytes) {
  if (walk.in_stride_x != 1 || walk.out_stride_y != 1) return false;
  return WithOddTileBytes(element_bytes, false,
                          [&](auto bytes) { return SuitOddTilesOf<bytes()>(walk, false); });
}

// Returns whether an image of bytes or 16-bit elements is so small that words leave a CTA little work. Small
// blocks were faster for images of this size (docs/benchmarks/2026-11-26-h200-planes.md).
bool IsSmallImage(const TileWalk& walk, std::size_t element_bytes) {
  const std::int64_t most = element_bytes == 1 ? 6200 : 8300;
  return walk.nx * walk.ny * static_cast<std::int64_t>(element_bytes) <= most;
}

// Returns whether the box kernel finds its 4-byte or wider words so slowly that small blocks are faster
// (docs/benchmarks/2026-11-26-h200-planes.md).
bool FindsWordsSlowly(const PackedBox& box) {
  constexpr double kMinSlowSlots = 60, kWarpBytes = 128;
  const double stored = static_cast<double>(box.store.row_count) * box.store.row_bytes;
  return box.issue_slots * kWarpBytes >= kMinSlowSlots * stored;
}

bool KeepsRows(const CanonicalTranspose& transpose) {
  const int inner = transpose.rank - 1;
  return transpose.in_strides[inner] == 1 && transpose.perm[inner] == inner;
}

// Merges the elements of rows into wider ones if rows stay rows. An axis of one wider element disappears.
void WidenRows(CanonicalTranspose& transpose, TransposePlan& plan, const void* in, const void* out) {
  if (!KeepsRows(transpose)) return;
  const std::size_t wider = RowElementBytes(transpose, plan.element_bytes, in, out);
  transpose = WithWiderElements(transpose, static_cast<std::int64_t>(wider / plan.element_bytes));
  plan.element_bytes = wider;
}

// Plans for short axes, or odd sizes.
TransposePlan PlanBoxes(const CanonicalTranspose& transpose, const TileWalk& walk, bool joins_words,
                        const DeviceTraits& traits, const void* in, const void* out, TransposePlan plan) {
  const auto choose = [&plan](TransposeKernel kernel, const auto& shape) {
    plan.kernel = kernel;
    plan.shape = shape;
    return plan;
  };
  const auto blocks = PlanSmallBlocks(transpose, plan.element_bytes, traits, in, out);
  const bool is_narrow = plan.element_bytes <= 2;
  if (blocks.has_value() && is_narrow) return choose(TransposeKernel::kSmallBlocks, *blocks);
  // For 8-bit and 16-bit elements that boxes would gather one by one.
  if (joins_words) return choose(TransposeKernel::kJoinedWords, walk);
  const PackedBox box = PlanPackedBox(transpose, static_cast<int>(plan.element_bytes));
  if (blocks.has_value() && FindsWordsSlowly(box)) return choose(TransposeKernel::kSmallBlocks, *blocks);
  return choose(TransposeKernel::kBox, box);
}

}  // namespace

double FillOf(const TileWalk& walk, std::int64_t tile_x, std::int64_t tile_y) {
  return FillOf(walk.nx, tile_x) * FillOf(walk.ny, tile_y);
}

bool HasFewTiles(const TileWalk& walk) {
  constexpr std::int64_t kMaxElements = 16 << 10;
  return walk.nx * walk.ny * walk.batch.Count() <= kMaxElements;
}

std::optional<TransposePlan> PlanTransposeBy(TransposeKernel kernel, const TransposeProblem& problem,
                                             const DeviceTraits& traits, const void* in, const void* out) {
  TransposePlan plan{.kernel = kernel, .element_bytes = SizeOf(problem.dtype)};
  if (problem.shape.Count() == 0) return plan;
  CanonicalTranspose transpose = Canonicalize(problem);
  plan.in_bytes = InputExtent(transpose) * static_cast<std::int64_t>(plan.element_bytes);
  if (transpose.IsIdentity() || kernel == TransposeKernel::kCopy) {
    return transpose.IsIdentity() && kernel == TransposeKernel::kCopy ? std::optional(plan) : std::nullopt;
  }
  WidenRows(transpose, plan, in, out);
  const std::size_t bytes = plan.element_bytes;
  const TileWalk walk = MakeTileWalk(transpose);
  const auto with = [&plan](bool can, const auto& shape) {
    plan.shape = shape;
    return can ? std::optional(plan) : std::nullopt;
  };
  const auto with_value = [&plan](const auto& shape) {
    if (!shape.has_value()) return std::optional<TransposePlan>();
    plan.shape = *shape;
    return std::optional(plan);
  };
  switch (kernel) {
    case TransposeKernel::kCopy:
      break;
    case TransposeKernel::kRows:
      return with(KeepsRows(transpose) && CanCopyRows(transpose, bytes, out), transpose);
    case TransposeKernel::kTiles:
      return with(CanTile(walk, bytes, in, out), transpose);
    case TransposeKernel::kOddTiles:
      return with(CanTakeOddTiles(walk, bytes), walk);
    case TransposeKernel::kJoinedTiles:
      return with_value(AnyJoinedTiles(transpose, bytes));
    case TransposeKernel::kChannels:
      return with(SuitChannels(walk, bytes, in, out), walk);
    case TransposeKernel::kSplitWords:
      return with(ChannelWordsOf(walk, bytes, in, out) == ChannelSide::kSplit, walk);
    case TransposeKernel::kJoinedWords:
      return with(ChannelWordsOf(walk, bytes, in, out) == ChannelSide::kJoined, walk);
    case TransposeKernel::kBox:
      return with(true, PlanPackedBox(transpose, static_cast<int>(bytes)));
    case TransposeKernel::kSmallBlocks:
      return with_value(PlanSmallBlocks(transpose, bytes, traits, in, out));
  }
  return std::nullopt;
}

bool CanTranspose(TransposeKernel kernel, const TransposeProblem& problem, const DeviceTraits& traits) {
  // Boxes can always be cut, but planning them takes long.
  if (kernel == TransposeKernel::kBox) {
    return problem.shape.Count() == 0 || !Canonicalize(problem).IsIdentity();
  }
  return PlanTransposeBy(kernel, problem, traits, nullptr, nullptr).has_value();
}

TransposePlan PlanTranspose(const TransposeProblem& problem, const DeviceTraits& traits, const void* in,
                            const void* out) {
  TransposePlan plan;
  plan.element_bytes = SizeOf(problem.dtype);
  if (problem.shape.Count() == 0) return plan;
  CanonicalTranspose transpose = Canonicalize(problem);
  plan.in_bytes = InputExtent(transpose) * static_cast<std::int64_t>(plan.element_bytes);
  const auto choose = [&plan](TransposeKernel kernel, auto shape) {
    plan.kernel = kernel;
    plan.shape = shape;
    return plan;
  };
  if (transpose.IsIdentity()) return choose(TransposeKernel::kCopy, std::monostate());
  WidenRows(transpose, plan, in, out);
  if (KeepsRows(transpose) && SuitRowCopy(transpose, plan.element_bytes, out)) {
    return choose(TransposeKernel::kRows, transpose);
  }
  const std::size_t bytes = plan.element_bytes;
  const TileWalk walk = MakeTileWalk(transpose);
  const ChannelSide words = ChannelWordsOf(walk, bytes, in, out);
  const bool split_by_words = words == ChannelSide::kSplit, joins_words = words == ChannelSide::kJoined;
  const bool suits_tiles = SuitTiles(walk, bytes, in, out);
  if (suits_tiles && !LeavesTilesEmpty(walk, bytes, split_by_words)) {
    return choose(TransposeKernel::kTiles, transpose);
  }
  const std::optional<JoinedTiles> joined = SuitedJoinedTiles(transpose, bytes);
  if (suits_tiles && !split_by_words && !joined.has_value()) {
    return choose(TransposeKernel::kTiles, transpose);
  }
  if (SuitChannels(walk, bytes, in, out)) return choose(TransposeKernel::kChannels, walk);
  if (split_by_words) {
    if (IsSmallImage(walk, bytes)) {
      const auto blocks = PlanSmallBlocks(transpose, bytes, traits, in, out);
      if (blocks.has_value()) return choose(TransposeKernel::kSmallBlocks, *blocks);
    }
    return choose(TransposeKernel::kSplitWords, walk);
  }
  if (SuitOddTiles(walk, bytes)) return choose(TransposeKernel::kOddTiles, walk);
  if (joined.has_value()) return choose(TransposeKernel::kJoinedTiles, *joined);
  return PlanBoxes(transpose, walk, joins_words, traits, in, out, plan);
}

}  // namespace warpline
