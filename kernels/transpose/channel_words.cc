#include "kernels/transpose/channel_words.h"

#include <limits>

namespace warpline {
namespace {

constexpr std::int64_t kWordBytes = 4;
// By 275 permutes with channels on an H200 (docs/benchmarks/2026-11-25-h200-channels.md): with fewer, threads
// have too little to move, and with more other kernels have enough. Joined ones are for boxes that would go
// element by element.
constexpr std::int64_t kLeastSplit = 4, kLeastJoined = 7, kMostChannels = 160;
// Words of a plane that keep most threads busy.
constexpr std::int64_t kLeastWords = 256;

bool AreMultiples(const std::int64_t (&strides)[kMaxRank], int rank, std::int64_t factor) {
  for (int axis = 0; axis < rank; ++axis) {
    if (strides[axis] % factor != 0) return false;
  }
  return true;
}

}  // namespace

ChannelSide ChannelWordsOf(const TileWalk& walk, std::size_t element_bytes, const void* in, const void* out) {
  if (element_bytes > 2 || walk.in_stride_x != 1 || walk.out_stride_y != 1) return ChannelSide::kNone;
  const auto per_word = static_cast<std::int64_t>(kWordBytes / element_bytes);
  const auto bases = reinterpret_cast<std::uintptr_t>(in) | reinterpret_cast<std::uintptr_t>(out);
  if (bases % kWordBytes != 0 || !AreMultiples(walk.batch.out_strides, walk.batch.rank, per_word)) {
    return ChannelSide::kNone;
  }
  const auto suits = [&](std::int64_t channels, std::int64_t least, std::int64_t pixels, std::int64_t plane) {
    // Offsets of planes have 32 bits.
    return channels >= least && channels <= kMostChannels && pixels >= kLeastWords * per_word &&
           channels * plane * static_cast<std::int64_t>(element_bytes) <=
               std::numeric_limits<std::uint32_t>::max();
  };
  if (walk.in_stride_y == walk.nx && suits(walk.nx, kLeastSplit, walk.ny, walk.out_stride_x)) {
    const bool in_words =
        walk.out_stride_x % per_word == 0 && AreMultiples(walk.batch.in_strides, walk.batch.rank, per_word);
    return in_words ? ChannelSide::kSplit : ChannelSide::kNone;
  }
  if (walk.out_stride_x == walk.ny && suits(walk.ny, kLeastJoined, walk.nx, walk.in_stride_y)) {
    return ChannelSide::kJoined;
  }
  return ChannelSide::kNone;
}

ChannelShare ShareOf(ChannelSide side, int channels, bool aligned) {
  // Of a CTA. Where pieces of planes share sectors with others, they should not be short.
  constexpr int kBytes = 20 << 10, kManyChannels = 48;
  const bool longer = side == ChannelSide::kSplit && !aligned && channels > kManyChannels;
  const int most = longer ? 2 * kBytes : kBytes;
  constexpr int kLeastLog2 = 5, kMostLog2 = 10;  // a warp's words
  int log2 = kLeastLog2;
  while (log2 < kMostLog2 && (channels * kWordBytes << (log2 + 1)) <= most) ++log2;
  return {.channels = channels, .words_log2 = log2, .pitch = channels | 1};
}

}  // namespace warpline
