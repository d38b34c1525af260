// Matrices with one side that consists of a few channels of pixels, as in images: decides which of them the
// kernel of channels.cu moves.
#ifndef WARPLINE_KERNELS_TRANSPOSE_CHANNELS_H_
#define WARPLINE_KERNELS_TRANSPOSE_CHANNELS_H_

#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/transpose/tile_walk.h"

namespace warpline {

// The numbers of channels for which there are kernels.
using ChannelCounts = std::integer_sequence<int, 2, 3, 4, 8, 16>;

// kSplit: x is the channel axis, so that the channels of a pixel are split among planes. kJoined: y is the
// channel axis, so that they are joined. The channels of a pixel are contiguous, and follow those of the
// previous pixel. kNone: neither.
enum class ChannelSide : std::uint8_t { kNone, kSplit, kJoined };
ChannelSide ChannelSideOf(const TileWalk& walk);

// Returns whether one side is a channel axis, with elements of 1 or 2 bytes. There must be enough pixels that
// warps have few idle lanes, and everything else must consist of aligned 16-byte vectors.
bool SuitChannels(const TileWalk& walk, std::size_t element_bytes, const void* in, const void* out);

}  // namespace warpline

#endif  // WARPLINE_KERNELS_TRANSPOSE_CHANNELS_H_
