// Launches the kernel of a plan.
#include "kernels/transpose/kernels.h"
#include "kernels/transpose/plan.h"

namespace warpline {

cudaError_t LaunchPlan(const TransposePlan& plan, const DeviceTraits& traits, const void* in, void* out,
                       cudaStream_t stream) {
  if (plan.in_bytes == 0) return cudaSuccess;
  const std::size_t bytes = plan.element_bytes;
  switch (plan.kernel) {
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
    case TransposeKernel::kSmallBlocks:
      return LaunchSmallBlocks(std::get<SmallBlocks>(plan.shape), bytes, traits, in, out, stream);
  }
  return cudaErrorNotSupported;
}

}  // namespace warpline
