#include <optional>

#include "kernels/cuda_choice.h"
#include "kernels/transpose/kernels.h"
#include "kernels/transpose/plan.h"
#include "kernels/transpose/swizzle.h"
#include "kernels/transpose/tile_walk.h"

namespace warpline {
namespace {

using TransposeVariant = CudaVariant<TransposeProblem>;

bool AnyProblem(const TransposeProblem&, const DeviceTraits&) { return true; }

// True for elements of 4 or 8 bytes, the sizes that the rungs of the ladder support.
bool IsWord(DType dtype) { return SizeOf(dtype) == 4 || SizeOf(dtype) == 8; }

bool TakesVectors(const TransposeProblem& problem, const DeviceTraits&) {
  const auto vector = static_cast<std::int64_t>(kChunkBytes / SizeOf(problem.dtype));
  return problem.shape.Count() == 0 || MakeTileWalk(Canonicalize(problem)).TakesVectors(vector);
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

// Launches one of the kernels that the server itself can choose.
template <TransposeKernel kKernel>
cudaError_t LaunchBy(const TransposeProblem& problem, const Operands& operands, const CudaContext& context,
                     cudaStream_t stream) {
  const void* const in = operands.in[0];
  if (context.plan != nullptr) {
    return LaunchPlan(std::get<TransposePlan>(context.plan->arguments), context.traits, in, operands.out,
                      stream);
  }
  const auto plan = PlanTransposeBy(kKernel, problem, context.traits, in, operands.out);
  if (!plan.has_value()) return cudaErrorNotSupported;
  return LaunchPlan(*plan, context.traits, in, operands.out, stream);
}

// The older name for all of these kernels.
constexpr std::string_view kGroup = "swizzled_packed";

// The cost of a kernel whose tiles may be nearly empty, if a request asks for it by name.
VariantCost TileCost(const TransposeProblem& problem, const DeviceTraits&) {
  if (problem.shape.Count() == 0) return {};
  const TileWalk walk = MakeTileWalk(Canonicalize(problem));
  const auto side = static_cast<std::int64_t>(16 * kChunkBytes / SizeOf(problem.dtype));
  return {.transfer = HasFewTiles(walk) ? 1 : 1 / FillOf(walk, side, side)};
}

// A row for a kernel of PlanTranspose, for elements of up to kMaxBytes. The server chooses it only through a
// plan.
template <TransposeKernel kKernel, std::size_t kMaxBytes = 16>
constexpr TransposeVariant Planned(std::string_view summary, int step = 0) {
  return {.name = Name(kKernel),
          .summary = summary,
          .reproducible = true,
          .supports_dtype = [](DType dtype) { return SizeOf(dtype) <= kMaxBytes; },
          .supports = [](const TransposeProblem& problem,
                         const DeviceTraits& traits) { return CanTranspose(kKernel, problem, traits); },
          .workspace_bytes = [](const TransposeProblem&, const DeviceTraits&) -> std::size_t { return 0; },
          .launch = LaunchBy<kKernel>,
          .preferred = [](const TransposeProblem&, const DeviceTraits&) { return false; },
          .cost = kKernel == TransposeKernel::kTiles || kKernel == TransposeKernel::kOddTiles ? TileCost
                                                                                              : nullptr,
          .group = kGroup,
          .step = step};
}

// The cost of a rung that takes kSlowdown times as long as a copy.
template <int kSlowdown>
VariantCost Slower(const TransposeProblem&, const DeviceTraits&) {
  return {.transfer = kSlowdown};
}

constexpr bool (*kAnyDType)(DType) = [](DType) { return true; };

// True for sides that fill tiles of 32 x 32 elements, if the server would otherwise choose larger tiles or
// boxes. For 8-byte elements, true for sides that fill such tiles only in part, because this rung skips the
// empty part sooner. From tuning of 256 transposes on an H200 (docs/benchmarks/2026-11-23-h200-tuning.md):
// 1.05 to 1.3 times as fast.
bool FillsSmallTiles(const TransposeProblem& problem, const DeviceTraits& traits) {
  if (problem.shape.Count() == 0 || !TakesVectors(problem, traits)) return false;
  const TileWalk walk = MakeTileWalk(Canonicalize(problem));
  if (HasFewTiles(walk)) return false;
  constexpr std::int64_t kTile = 32;
  const double fill = FillOf(walk, kTile, kTile);
  // For much wider matrices, the other kernel numbers tiles in bands.
  constexpr std::int64_t kWide = 1 << 16;
  if (SizeOf(problem.dtype) == 8) {
    return fill >= 0.5 && fill < 0.9 && (walk.nx <= kWide || walk.ny <= kTile);
  }
  return fill >= 0.9 && FillOf(walk, 2 * kTile, 2 * kTile) < kMinTileFill;
}

// In order: a rung that is the server's choice for some problems, the kernels of plans, the ladder, the
// oracle.
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
    Planned<TransposeKernel::kCopy>("a copy of all bytes, where the order of elements stays"),
    Planned<TransposeKernel::kRows>("copies of rows, where the innermost axis stays innermost"),
    Planned<TransposeKernel::kTiles, 8>("16-byte vectors through XOR-swizzled shared memory", 12),
    Planned<TransposeKernel::kOddTiles, 8>("tiles of words that are shifted where sides are odd"),
    Planned<TransposeKernel::kJoinedTiles, 8>("odd_tiles whose sides are several axes"),
    Planned<TransposeKernel::kChannels, 2>("2, 3, 4, 8 or 16 channels of pixels, in registers"),
    Planned<TransposeKernel::kSplitWords, 4>("channels of pixels, any number, split into planes by words"),
    Planned<TransposeKernel::kJoinedWords, 2>("planes, joined to channels of pixels by words"),
    Planned<TransposeKernel::kBox>("boxes of contiguous runs, where axes at either end are short"),
    Planned<TransposeKernel::kEqualBoxes, 4>("boxes that begin and end with words, each thread the same way"),
    Planned<TransposeKernel::kSmallBlocks, 4>("contiguous blocks of a few KiB, several in shared memory"),
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

}  // namespace

std::span<const CudaVariant<TransposeProblem>> CudaTransposeVariants() { return kVariants; }

CudaChoice<TransposeProblem> Choose(const TransposeProblem& problem, std::string_view variant,
                                    const DeviceTraits& traits, const Operands& operands) {
  const auto table = CudaTransposeVariants();
  const void *const in = operands.in[0], *const out = operands.out;
  const bool aligned =
      (reinterpret_cast<std::uintptr_t>(in) | reinterpret_cast<std::uintptr_t>(out)) % kChunkBytes == 0;
  if (variant.empty() && aligned && MayChoose(kVariants[0], problem, traits)) return {.row = &kVariants[0]};
  if (variant.empty() || variant == kGroup) {
    TransposePlan plan = PlanTranspose(problem, traits, in, out);
    const auto& row = RowNamed(table, Name(plan.kernel));
    return {.row = &row, .configuration = 0, .plan = {std::move(plan)}};
  }
  CudaChoice<TransposeProblem> choice = ChooseInOrder(table, problem, variant, traits);
  if (choice.row == nullptr || choice.row->group != kGroup) return choice;
  for (int i = 0; i < kTransposeKernels; ++i) {
    const auto kernel = static_cast<TransposeKernel>(i);
    if (Name(kernel) != variant) continue;
    std::optional<TransposePlan> plan = PlanTransposeBy(kernel, problem, traits, in, out);
    if (!plan.has_value()) return {};
    choice.plan.arguments = *std::move(plan);
  }
  return choice;
}

}  // namespace warpline
