#include <algorithm>
#include <optional>

#include "kernels/ceil_div.h"
#include "kernels/cuda_variants.h"
#include "kernels/fast_divisor.h"
#include "kernels/transpose/channel_words.h"
#include "kernels/transpose/channels.h"
#include "kernels/transpose/joined_tiles.h"
#include "kernels/transpose/kernels.h"
#include "kernels/transpose/swizzle.h"
#include "kernels/transpose/tile_walk.h"

namespace warpline {
namespace {

using TransposeVariant = CudaVariant<TransposeProblem>;

bool AnyProblem(const TransposeProblem&, const DeviceTraits&) { return true; }

// Elements of 4 or 8 bytes, the sizes that the rungs of the ladder are written for.
bool IsWord(DType dtype) { return SizeOf(dtype) == 4 || SizeOf(dtype) == 8; }

bool TakesVectors(const TransposeProblem& problem, const DeviceTraits&) {
  const auto vector = static_cast<std::int64_t>(kChunkBytes / SizeOf(problem.dtype));
  return problem.shape.Count() == 0 || MakeTileWalk(Canonicalize(problem)).TakesVectors(vector);
}

// The fraction of tiles of tile_x x tile_y elements that is in use.
double Fill(const TileWalk& walk, std::int64_t tile_x, std::int64_t tile_y) {
  return FillOf(walk.nx, tile_x) * FillOf(walk.ny, tile_y);
}
double Fill(const TileWalk& walk, std::int64_t side) { return Fill(walk, side, side); }

// Tiles with less leave too many lanes idle.
constexpr double kMinFill = 0.45;
// Returns whether the problem has only one or two tiles.
bool IsSmall(const TileWalk& walk) {
  constexpr std::int64_t kMaxSmallElements = 16 << 10;
  return walk.nx * walk.ny * walk.batch.Count() <= kMaxSmallElements;
}

constexpr TransposeVariant Row(int step, std::string_view name, std::string_view summary,
                               bool (*supports_dtype)(DType), decltype(TransposeVariant::supports) supports,
                               CudaLaunch<TransposeProblem>* launch,
                               decltype(TransposeVariant::cost) cost = nullptr) {
  return {.name = name,
          .summary = summary,
          .reproducible = true,
          .supports_dtype = supports_dtype,
          .supports = supports,
          .workspace_bytes = [](const TransposeProblem&, const DeviceTraits&) -> std::size_t { return 0; },
          .launch = launch,
          .cost = cost,
          .step = step};
}

// The cost of a rung that takes kSlowdown times as long as a copy.
template <int kSlowdown>
VariantCost Slower(const TransposeProblem&, const DeviceTraits&) {
  return {.transfer = kSlowdown};
}

constexpr bool (*kAnyDType)(DType) = [](DType) { return true; };

// Sides that fill tiles of 32 x 32 elements, where the choice would take larger tiles or boxes; and of 8
// bytes those that fill such tiles in part, of which this rung leaves out the rest sooner. By tuning of 256
// transposes on an H200 (docs/benchmarks/2026-11-23-h200-tuning.md): 1.05 to 1.3 times as fast.
bool FillsSmallTiles(const TransposeProblem& problem, const DeviceTraits& traits) {
  if (problem.shape.Count() == 0 || !TakesVectors(problem, traits)) return false;
  const TileWalk walk = MakeTileWalk(Canonicalize(problem));
  if (IsSmall(walk)) return false;
  constexpr std::int64_t kTile = 32;
  const double fill = Fill(walk, kTile);
  // The other kernel takes the tiles of a much wider matrix in bands.
  constexpr std::int64_t kWide = 1 << 16;
  if (SizeOf(problem.dtype) == 8) {
    return fill >= 0.5 && fill < 0.9 && (walk.nx <= kWide || walk.ny <= kTile);
  }
  return fill >= 0.9 && Fill(walk, 2 * kTile) < kMinFill;
}

// A rung that is the choice for some, the choice for all others, the ladder from its lowest rung, the oracle.
constexpr TransposeVariant kVariants[] = {
    {.name = "padded_vectorized",
     .summary = "16-byte vectors of global memory, padded tile",
     .reproducible = true,
     .supports_dtype = IsWord,
     .supports = TakesVectors,
     .workspace_bytes = [](const TransposeProblem&, const DeviceTraits&) -> std::size_t { return 0; },
     .launch = LaunchTransposePaddedVectorized,
     .preferred = FillsSmallTiles,
     .step = 7},
    Row(12, "swizzled_packed",
        "16-byte vectors through XOR-swizzled shared memory; shifted words where sides are odd; channels of "
        "pixels in registers; boxes of runs where axes are short; row copy where rows stay rows",
        kAnyDType, AnyProblem, LaunchTransposeSwizzledPacked),
    Row(2, "naive_write", "one thread an element, coalesced writes", IsWord, AnyProblem,
        LaunchTransposeNaiveWrite, Slower<4>),
    Row(3, "shared", "32 x 32 tile in shared memory, coalesced both ways, bank conflicts", IsWord, AnyProblem,
        LaunchTransposeShared, Slower<4>),
    Row(4, "padded", "33 columns in the tile, no bank conflicts", IsWord, AnyProblem, LaunchTransposePadded,
        Slower<3>),
    Row(5, "multi_element", "padded tile, 32 x 8 threads of 4 elements each", IsWord, AnyProblem,
        LaunchTransposeMultiElement),
    Row(0, "unpadded", "multi_element without padding: what bank conflicts cost with as many threads", IsWord,
        AnyProblem, LaunchTransposeUnpadded),
    Row(6, "vectorized", "16-byte vectors of global memory, which rows must be multiples of; bank conflicts",
        IsWord, TakesVectors, LaunchTransposeVectorized),
    Row(8, "shifted", "4 elements a thread, row y of the tile rotated by y", IsWord, AnyProblem,
        LaunchTransposeShifted),
    Row(9, "swizzled", "4 elements a thread, XOR-swizzled tile", IsWord, AnyProblem, LaunchTransposeSwizzled),
    Row(10, "swizzled_vectorized", "16-byte vectors of global memory, tile XOR-swizzled by vectors", IsWord,
        TakesVectors, LaunchTransposeSwizzledVectorized),
    Row(11, "shuffle", "32 x 32 tile in the registers of a warp, no shared memory", IsWord, AnyProblem,
        LaunchTransposeShuffle),
    Row(1, "naive_read", "one thread an element, coalesced reads", kAnyDType, AnyProblem,
        LaunchTransposeNaive, Slower<8>),
};

// The widest elements that rows and both bases consist of, in bytes, for a transposition that keeps rows.
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

// From the first element of the input to behind its last, between which there may be others.
std::int64_t InputExtent(const CanonicalTranspose& transpose) {
  std::int64_t last = 0;
  for (int axis = 0; axis < transpose.rank; ++axis) {
    last += (transpose.dims[axis] - 1) * transpose.in_strides[axis];
  }
  return last + 1;
}

// The shortest rows worth a copy, in bytes, of elements of so many: where these are wide, boxes are not slow
// either. By 217 permutes on an H200 (docs/benchmarks/2026-11-25-h200-drawn.md).
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

// Offsets are to have 31 bits, and vectors of the output to be aligned; else boxes take rows, too.
bool SuitRowCopy(const CanonicalTranspose& transpose, std::size_t element_bytes, const void* out) {
  std::int64_t count = 1;
  for (int axis = 0; axis < transpose.rank; ++axis) count *= transpose.dims[axis];
  const auto row_bytes = static_cast<std::size_t>(transpose.dims[transpose.rank - 1]) * element_bytes;
  return reinterpret_cast<std::uintptr_t>(out) % kChunkBytes == 0 &&
         row_bytes >= ShortestRow(element_bytes) &&
         std::max(count, InputExtent(transpose)) < FastDivisor::kMax;
}

// Returns whether tiles suit the problem. Sides must be multiples of 16 bytes, and long enough that the tiles
// at their ends leave few lanes idle. Narrow elements lose more where boxes gather them one by one. A small
// problem takes no planning.
bool SuitTiles(const TileWalk& walk, std::size_t element_bytes, const void* in, const void* out) {
  const auto bases = reinterpret_cast<std::uintptr_t>(in) | reinterpret_cast<std::uintptr_t>(out);
  const auto vector = static_cast<std::int64_t>(kChunkBytes / element_bytes);
  // 16 bytes an element are a vector anyway, of which boxes have more in flight.
  if (element_bytes == kChunkBytes || bases % kChunkBytes != 0 || !walk.TakesVectors(vector)) return false;
  const std::int64_t side = vector * (element_bytes == 1 ? 8 : 16);
  const double least_fill = element_bytes == 1 ? 0.25 : element_bytes == 2 ? 0.3 : kMinFill;
  return Fill(walk, side) >= least_fill || IsSmall(walk);
}

// Returns whether tiles of vectors are so empty that others are faster. For bytes, tiles whose sides are
// several axes are faster (u8 6x168x8x767x48 perm 4,3,2,0,1 took 266 us instead of 184). For channels, words
// are faster.
bool LeavesTilesEmpty(const TileWalk& walk, std::size_t element_bytes, bool split_by_words) {
  const double least = split_by_words ? 0.8 : element_bytes == 1 ? 0.6 : 0;
  const std::int64_t side = element_bytes == 1 ? TransposeTile<1, 8>::kTile : TransposeTile<2>::kTile;
  return !IsSmall(walk) && Fill(walk, side) < least;
}

// When odd tiles are faster than boxes, by some 400 permutes, most of them drawn at random
// (docs/benchmarks/2026-11-26-h200-two-tiles.md): how full they are along each side, at least, where they are
// few and where they are many. Those at both ends along y count for more, as they end rows of the output
// element by element: the limit of a few tiles of 16-bit elements leaves out one and two of them.
struct OddTileLimits {
  double few_x, many_x, few_y, many_y;
  std::int64_t least_many_y = 2;
};

// `joins`: sides are several axes.
template <int kBytes>
OddTileLimits LimitsOf(const TileWalk& walk, bool joins) {
  if (kBytes >= 4) return {.few_x = 0.6, .many_x = 0.6, .few_y = 0.58, .many_y = 0.58};
  // Boxes read words where rows of the input follow each other in words.
  const bool by_words = !joins && walk.in_stride_y * kBytes % 4 == 0;
  if (kBytes == 2) {
    const double many_y = joins || by_words ? 0.7 : 0.57;
    return {.few_x = 0.8, .many_x = 0.68, .few_y = 0.69, .many_y = many_y, .least_many_y = 4};
  }
  const double many_y = joins ? 0.65 : by_words ? 0.59 : 0.495;
  return {.few_x = 0.8, .many_x = 0.6, .few_y = 0.61, .many_y = many_y};
}

// The same where sides are odd; offsets in such a tile have 32 bits.
template <int kBytes>
bool SuitOddTilesOf(const TileWalk& walk, bool joins) {
  constexpr std::int64_t kMaxBytes = std::int64_t{1} << 31;
  constexpr double kEnd = 0.6;
  // With fewer tiles along y, partial tiles along x leave too much empty.
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
         walk.in_stride_y < kMaxBytes / (kBytes * (Tile::kRows + 1)) &&
         walk.out_stride_x < kMaxBytes / (kBytes * (Tile::kTileX + 1));
}

// Sides of several axes, if odd tiles of these are faster than boxes.
template <int kBytes>
std::optional<JoinedTiles> JoinSidesOf(const CanonicalTranspose& transpose) {
  using Tile = OddTile<kBytes>;
  std::optional<JoinedTiles> tiles = JoinSides(transpose, kBytes, Tile::kTileX, Tile::kTileY);
  if (!tiles.has_value() || !SuitOddTilesOf<kBytes>(tiles->walk, true)) return std::nullopt;
  // Boxes of wide elements are slow where these are full only, and never where a side is short.
  constexpr double kMinWide = 0.8;
  constexpr std::int64_t kMinRowElements = 2 * Tile::kTileX;
  if (kBytes >= 4 &&
      (tiles->walk.nx < kMinRowElements || Fill(tiles->walk, Tile::kTileX, Tile::kTileY) < kMinWide)) {
    return std::nullopt;
  }
  return tiles;
}

std::optional<JoinedTiles> SuitedJoinedTiles(const CanonicalTranspose& transpose, std::size_t element_bytes) {
  return WithOddTileBytes(element_bytes, std::optional<JoinedTiles>(),
                          [&](auto bytes) { return JoinSidesOf<bytes()>(transpose); });
}

bool SuitOddTiles(const TileWalk& walk, std::size_t element_bytes) {
  if (walk.in_stride_x != 1 || walk.out_stride_y != 1) return false;
  return WithOddTileBytes(element_bytes, false,
                          [&](auto bytes) { return SuitOddTilesOf<bytes()>(walk, false); });
}

// Returns whether an image of bytes or 16-bit elements is so small that words leave a CTA little to do. Small
// blocks were faster for images of this size (docs/benchmarks/2026-11-26-h200-planes.md).
bool IsSmallImage(const TileWalk& walk, std::size_t element_bytes) {
  const std::int64_t most = element_bytes == 1 ? 6200 : 8300;
  return walk.nx * walk.ny * static_cast<std::int64_t>(element_bytes) <= most;
}

}  // namespace

cudaError_t LaunchTransposeSwizzledPacked(const TransposeProblem& problem, const Operands& operands,
                                          const CudaContext& context, cudaStream_t stream) {
  const std::int64_t count = problem.shape.Count();
  if (count == 0) return cudaSuccess;
  std::size_t bytes = SizeOf(problem.dtype);
  const void* in = operands.in[0];
  void* out = operands.out;
  CanonicalTranspose transpose = Canonicalize(problem);
  if (transpose.IsIdentity()) {
    return LaunchFlatCopy(in, out, count * static_cast<std::int64_t>(bytes), stream);
  }
  const int inner = transpose.rank - 1;
  if (transpose.in_strides[inner] == 1 && transpose.perm[inner] == inner) {
    const std::size_t wider = RowElementBytes(transpose, bytes, in, out);
    transpose = WithWiderElements(transpose, static_cast<std::int64_t>(wider / bytes));
    bytes = wider;
    if (transpose.rank > inner && SuitRowCopy(transpose, bytes, out)) {
      return LaunchRowCopy(transpose, bytes, in, out, stream);
    }
  }
  const TileWalk walk = MakeTileWalk(transpose);
  const ChannelSide words = ChannelWordsOf(walk, bytes, in, out);
  const bool split_by_words = words == ChannelSide::kSplit;
  const bool suits_tiles = SuitTiles(walk, bytes, in, out);
  if (suits_tiles && !LeavesTilesEmpty(walk, bytes, split_by_words)) {
    return LaunchTileTranspose(transpose, bytes, context.traits, in, out, stream);
  }
  const std::optional<JoinedTiles> joined = SuitedJoinedTiles(transpose, bytes);
  if (suits_tiles && !split_by_words && !joined.has_value()) {
    return LaunchTileTranspose(transpose, bytes, context.traits, in, out, stream);
  }
  if (SuitChannels(walk, bytes, in, out)) return LaunchChannels(walk, bytes, in, out, stream);
  const std::int64_t in_bytes = InputExtent(transpose) * static_cast<std::int64_t>(bytes);
  if (split_by_words) {
    std::optional<SmallBlocks> blocks;
    if (IsSmallImage(walk, bytes)) blocks = PlanSmallBlocks(transpose, bytes, context.traits, in, out);
    if (blocks.has_value()) return LaunchSmallBlocks(*blocks, bytes, context.traits, in, out, stream);
    return LaunchChannelWords(ChannelSide::kSplit, walk, bytes, in_bytes, in, out, stream);
  }
  if (SuitOddTiles(walk, bytes)) return LaunchOddTiles(walk, bytes, in_bytes, in, out, stream);
  if (joined.has_value()) return LaunchJoinedTiles(*joined, bytes, in_bytes, in, out, stream);
  if (words == ChannelSide::kJoined && BeatEqualBoxes(walk)) {
    return LaunchChannelWords(words, walk, bytes, in_bytes, in, out, stream);
  }
  return LaunchPackedBox(transpose, bytes, context.traits, in, out, stream);
}

std::span<const CudaVariant<TransposeProblem>> CudaTransposeVariants() { return kVariants; }

}  // namespace warpline
