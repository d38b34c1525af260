#include "kernels/ceil_div.h"
#include "kernels/cuda_variants.h"
#include "kernels/transpose/channels.h"
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

// What tiles with so many elements a side have in them, of what they could have.
double Fill(const TileWalk& walk, std::int64_t side) {
  const auto of = [side](std::int64_t size) {
    return static_cast<double>(size) / static_cast<double>(CeilDiv(size, side) * side);
  };
  return of(walk.nx) * of(walk.ny);
}
// Tiles with less leave too many lanes idle.
constexpr double kLeastFill = 0.45;
// Where one or two tiles are all there is.
bool IsSmall(const TileWalk& walk) {
  constexpr std::int64_t kFewElements = 16 << 10;
  return walk.nx * walk.ny * walk.batch.Count() <= kFewElements;
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

// Of a rung that takes so many times as long as a copy.
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
  if (SizeOf(problem.dtype) == 8) return fill >= 0.5 && fill < 0.9;
  return fill >= 0.9 && Fill(walk, 2 * kTile) < kLeastFill;
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

// Rows of a sector or more are worth a copy, if that can be done in vectors. Where rows straddle sectors,
// they have to be longer.
bool AreLongRows(const CanonicalTranspose& transpose, std::size_t element_bytes) {
  const std::size_t bytes = static_cast<std::size_t>(transpose.dims[transpose.rank - 1]) * element_bytes;
  return element_bytes >= 4 && bytes >= (bytes % 32 == 0 ? 32 : 256);
}

// Whether tiles suit the problem: sides are multiples of 16 bytes, and long enough that the tiles at their
// ends leave few lanes idle. A small problem takes no planning.
bool SuitTiles(const TileWalk& walk, std::size_t element_bytes, const void* in, const void* out) {
  const auto bases = reinterpret_cast<std::uintptr_t>(in) | reinterpret_cast<std::uintptr_t>(out);
  const auto vector = static_cast<std::int64_t>(kChunkBytes / element_bytes);
  // 16 bytes an element are a vector anyway, of which boxes have more in flight.
  if (element_bytes == kChunkBytes || bases % kChunkBytes != 0 || !walk.TakesVectors(vector)) return false;
  const std::int64_t side = vector * (element_bytes == 1 ? 8 : 16);
  return Fill(walk, side) >= kLeastFill || IsSmall(walk);
}

// The same where sides are odd; offsets in such a tile have 32 bits.
template <int kBytes>
bool SuitOddTilesOf(const TileWalk& walk) {
  constexpr double kMinFill = 0.6;
  constexpr std::int64_t kMaxBytes = std::int64_t{1} << 31;
  using Tile = OddTile<kBytes>;
  const auto size = static_cast<double>(walk.nx) * static_cast<double>(walk.ny);
  const auto tiles = static_cast<double>(CeilDiv(walk.nx, Tile::kTileX) * CeilDiv(walk.ny, Tile::kTileY));
  return size >= kMinFill * tiles * Tile::kTileX * Tile::kTileY &&
         walk.in_stride_y < kMaxBytes / (kBytes * (Tile::kRows + 1)) &&
         walk.out_stride_x < kMaxBytes / (kBytes * (Tile::kTileX + 1));
}

bool SuitOddTiles(const TileWalk& walk, std::size_t element_bytes) {
  if (walk.in_stride_x != 1 || walk.out_stride_y != 1) return false;
  switch (element_bytes) {
    case 1:
      return SuitOddTilesOf<1>(walk);
    case 2:
      return SuitOddTilesOf<2>(walk);
    case 4:
      return SuitOddTilesOf<4>(walk);
    case 8:
      return SuitOddTilesOf<8>(walk);
    default:
      return false;
  }
}

// From the first element of the input to behind its last, between which there may be others.
std::int64_t InputExtent(const CanonicalTranspose& transpose) {
  std::int64_t last = 0;
  for (int axis = 0; axis < transpose.rank; ++axis) {
    last += (transpose.dims[axis] - 1) * transpose.in_strides[axis];
  }
  return last + 1;
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
    if (transpose.rank > inner && AreLongRows(transpose, bytes)) {
      return LaunchRowCopy(transpose, bytes, in, out, stream);
    }
  }
  const TileWalk walk = MakeTileWalk(transpose);
  if (SuitTiles(walk, bytes, in, out)) {
    return LaunchTileTranspose(transpose, bytes, context.traits, in, out, stream);
  }
  if (SuitChannels(walk, bytes, in, out)) return LaunchChannels(walk, bytes, in, out, stream);
  if (SuitOddTiles(walk, bytes)) {
    return LaunchOddTiles(walk, bytes, InputExtent(transpose) * static_cast<std::int64_t>(bytes), in, out,
                          stream);
  }
  return LaunchPackedBox(transpose, bytes, context.traits, in, out, stream);
}

std::span<const CudaVariant<TransposeProblem>> CudaTransposeVariants() { return kVariants; }

}  // namespace warpline
