// Matrices of which one side is the few channels of pixels, as images have them, and which of them the kernel
// of channels.cu takes.
#ifndef WARPLINE_KERNELS_TRANSPOSE_CHANNELS_H_
#define WARPLINE_KERNELS_TRANSPOSE_CHANNELS_H_

#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/transpose/tile_walk.h"

namespace warpline {

// The numbers of channels that there is a kernel for.
using ChannelCounts = std::integer_sequence<int, 2, 3, 4, 8, 16>;

// Whether x are channels, so that those of a pixel are split among planes, or y, so that they are joined:
// they are neighbours in memory, which follow those of the pixel before. Else neither.
enum class ChannelSide : std::uint8_t { kNone, kSplit, kJoined };
ChannelSide ChannelSideOf(const TileWalk& walk);

// Whether one side is channels, of elements of 1 or 2 bytes; there are enough pixels that warps have few idle
// lanes; and all else is in vectors of 16 bytes.
bool SuitChannels(const TileWalk& walk, std::size_t element_bytes, const void* in, const void* out);

}  // namespace warpline

#endif  // WARPLINE_KERNELS_TRANSPOSE_CHANNELS_H_
