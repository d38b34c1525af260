#include "kernels/transpose/channels.h"

#include "kernels/transpose/swizzle.h"

namespace warpline {
namespace {

template <int... kCounts>
bool IsOneOf(std::integer_sequence<int, kCounts...>, std::int64_t channels) {
  return ((channels == kCounts) || ...);
}

}  // namespace

ChannelSide ChannelSideOf(const TileWalk& walk) {
  if (walk.in_stride_x != 1 || walk.out_stride_y != 1) return ChannelSide::kNone;
  // In a dense matrix, the rows of both sides are contiguous. The channel side is the one whose size is in
  // ChannelCounts.
  if (walk.in_stride_y == walk.nx && IsOneOf(ChannelCounts(), walk.nx)) return ChannelSide::kSplit;
  if (walk.out_stride_x == walk.ny && IsOneOf(ChannelCounts(), walk.ny)) return ChannelSide::kJoined;
  return ChannelSide::kNone;
}

bool SuitChannels(const TileWalk& walk, std::size_t element_bytes, const void* in, const void* out) {
  const ChannelSide side = ChannelSideOf(walk);
  if (element_bytes > 2 || side == ChannelSide::kNone) return false;
  const bool splits = side == ChannelSide::kSplit;
  const auto vector = static_cast<std::int64_t>(kChunkBytes / element_bytes);
  const std::int64_t pixels = splits ? walk.ny : walk.nx;
  const std::int64_t plane = splits ? walk.out_stride_x : walk.in_stride_y;
  constexpr std::int64_t kMinVectors = 512;
  const auto bases = reinterpret_cast<std::uintptr_t>(in) | reinterpret_cast<std::uintptr_t>(out);
  bool suits = pixels >= kMinVectors * vector && bases % kChunkBytes == 0 && pixels % vector == 0 &&
               plane % vector == 0;
  for (int axis = 0; axis < walk.batch.rank; ++axis) {
    suits = suits && walk.batch.in_strides[axis] % vector == 0 && walk.batch.out_strides[axis] % vector == 0;
  }
  return suits;
}

}  // namespace warpline
