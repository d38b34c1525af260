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

// kSplit: x are channels, so that the channels of a pixel are split among planes. kJoined: y are channels, so
// that they are joined. The channels of a pixel are neighbours in memory, and follow those of the pixel
// before. kNone: neither.
enum class ChannelSide : std::uint8_t { kNone, kSplit, kJoined };
ChannelSide ChannelSideOf(const TileWalk& walk);

// Returns whether one side is channels, of elements of 1 or 2 bytes. There must be enough pixels that warps
// have few idle lanes, and all else must be in vectors of 16 bytes.
bool SuitChannels(const TileWalk& walk, std::size_t element_bytes, const void* in, const void* out);

}  // namespace warpline

#endif  // WARPLINE_KERNELS_TRANSPOSE_CHANNELS_H_
