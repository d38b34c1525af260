// Variant `swizzled_packed`: launches the kernel that PlanTranspose chose.
#include "kernels/transpose/kernels.h"
#include "kernels/transpose/plan.h"
#include "kernels/transpose/plans.h"

namespace warpline {
namespace {

cudaError_t LaunchPlan(const TransposePlan& plan, const DeviceTraits& traits, const void* in, void* out,
                       cudaStream_t stream) {
  const std::size_t bytes = plan.element_bytes;
  switch (plan.kernel) {
    case TransposeKernel::kNone:
      return cudaSuccess;
    case TransposeKernel::kCopy:
      return LaunchFlatCopy(in, out, plan.in_bytes, stream);
    case TransposeKernel::kRows:
      return LaunchRowCopy(std::get<CanonicalTranspose>(plan.shape), bytes, in, out, stream);
    case TransposeKernel::kTiles:
      return LaunchTileTranspose(std::get<CanonicalTranspose>(plan.shape), bytes, traits, in, out, stream);
    case TransposeKernel::kOddTiles:
      return LaunchOddTiles(std::get<TileWalk>(plan.shape), bytes, plan.in_bytes, in, out, stream);
    case TransposeKernel::kJoinedTiles:
      return LaunchJoinedTiles(std::get<JoinedTiles>(plan.shape), bytes, plan.in_bytes, in, out, stream);
    case TransposeKernel::kChannels:
      return LaunchChannels(std::get<TileWalk>(plan.shape), bytes, in, out, stream);
    case TransposeKernel::kSplitWords:
    case TransposeKernel::kJoinedWords: {
      const bool splits = plan.kernel == TransposeKernel::kSplitWords;
      return LaunchChannelWords(splits ? ChannelSide::kSplit : ChannelSide::kJoined,
                                std::get<TileWalk>(plan.shape), bytes, plan.in_bytes, in, out, stream);
    }
    case TransposeKernel::kBox:
      return LaunchPackedBox(std::get<PackedBox>(plan.shape), bytes, in, out, stream);
    case TransposeKernel::kEqualBoxes:
      return LaunchEqualBoxes(std::get<PackedBox>(plan.shape), bytes, traits.multiprocessors, in, out,
                              stream);
    case TransposeKernel::kSmallBlocks:
      return LaunchSmallBlocks(std::get<SmallBlocks>(plan.shape), bytes, traits, in, out, stream);
  }
  return cudaErrorNotSupported;
}

}  // namespace

cudaError_t LaunchTransposeSwizzledPacked(const TransposeProblem& problem, const Operands& operands,
                                          const CudaContext& context, cudaStream_t stream) {
  const void* const in = operands.in[0];
  if (context.transpose_plans == nullptr) {
    return LaunchPlan(PlanTranspose(problem, context.traits, in, operands.out), context.traits, in,
                      operands.out, stream);
  }
  const auto plan = context.transpose_plans->Get(problem, context.traits, in, operands.out);
  return LaunchPlan(*plan, context.traits, in, operands.out, stream);
}

}  // namespace warpline
