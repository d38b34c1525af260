#include <optional>

#include "kernels/cuda_choice.h"
#include "kernels/transpose/kernels.h"
#include "kernels/transpose/plan.h"
#include "kernels/transpose/rungs.h"
#include "kernels/transpose/swizzle.h"
#include "kernels/transpose/tile_walk.h"

namespace warpline {
namespace {

using TransposeVariant = CudaVariant<TransposeProblem>;

std::size_t NoWorkspace(const TransposeProblem&, const DeviceTraits&) { return 0; }

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
          .workspace_bytes = NoWorkspace,
          .launch = LaunchBy<kKernel>,
          .preferred = [](const TransposeProblem&, const DeviceTraits&) { return false; },
          .cost = kKernel == TransposeKernel::kTiles || kKernel == TransposeKernel::kOddTiles ? TileCost
                                                                                              : nullptr,
          .group = kGroup,
          .step = step};
}

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

// In order: a rung that is the server's choice for some problems, the kernels of plans, the oracle.
constexpr TransposeVariant kVariants[] = {
    {.name = "padded_vectorized",
     .summary = "16-byte vectors of global memory, padded tile",
     .reproducible = true,
     .supports_dtype = IsWord,
     .supports = TakesVectors,
     .workspace_bytes = NoWorkspace,
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
    Planned<TransposeKernel::kSmallBlocks, 4>("contiguous blocks of a few KiB, several in shared memory"),
    {.name = "naive_read",
     .summary = "one thread an element, coalesced reads",
     .reproducible = true,
     .supports_dtype = [](DType) { return true; },
     .supports = [](const TransposeProblem&, const DeviceTraits&) { return true; },
     .workspace_bytes = NoWorkspace,
     .launch = LaunchTransposeNaive,
     .cost = [](const TransposeProblem&, const DeviceTraits&) { return VariantCost{.transfer = 8}; },
     .step = 1},
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
