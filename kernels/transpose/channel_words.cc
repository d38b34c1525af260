#include "kernels/transpose/channel_words.h"

#include <limits>

#include "kernels/ceil_div.h"

namespace warpline {
namespace {

constexpr std::int64_t kWordBytes = 4;
// All of this by permutes with channels on an H200 (docs/benchmarks/2026-11-25-h200-channels.md). With fewer
// channels boxes are as fast; more, up to where tiles are full, were not measured, or boxes were as fast.
constexpr std::int64_t kLeastSplit = 4, kLeastJoined = 5, kMostChannels = 160, kMostJoinedHalves = 128;
// Words of a plane that keep most threads busy.
constexpr std::int64_t kLeastWords = 128;

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
  if (reinterpret_cast<std::uintptr_t>(in) % kWordBytes != 0) return ChannelSide::kNone;
  const auto suits = [&](std::int64_t channels, std::int64_t least, std::int64_t pixels, std::int64_t plane) {
    // Offsets of planes have 32 bits.
    return channels >= least && channels <= kMostChannels && pixels >= kLeastWords * per_word &&
           channels * plane * static_cast<std::int64_t>(element_bytes) <=
               std::numeric_limits<std::uint32_t>::max();
  };
  if (walk.in_stride_y == walk.nx && suits(walk.nx, kLeastSplit, walk.ny, walk.out_stride_x)) {
    const bool in_words = reinterpret_cast<std::uintptr_t>(out) % kWordBytes == 0 &&
                          walk.out_stride_x % per_word == 0 &&
                          AreMultiples(walk.batch.out_strides, walk.batch.rank, per_word) &&
                          AreMultiples(walk.batch.in_strides, walk.batch.rank, per_word);
    return in_words ? ChannelSide::kSplit : ChannelSide::kNone;
  }
  if (element_bytes == 2 && walk.ny > kMostJoinedHalves) return ChannelSide::kNone;
  if (walk.out_stride_x == walk.ny && suits(walk.ny, kLeastJoined, walk.nx, walk.in_stride_y)) {
    return ChannelSide::kJoined;
  }
  return ChannelSide::kNone;
}

ChannelShare ShareOf(ChannelSide side, std::int64_t channels, std::int64_t words, std::int64_t plane_bytes) {
  // Few enough words that there are many CTAs; but where pieces of planes that are written share sectors with
  // others, these should not be short. Planes that begin in the middle of a sector are as fast as those that
  // begin with one, unless pieces are a warp's. All of it for 228 KB of shared memory a multiprocessor; GPUs
  // that have 100 hold fewer CTAs, which was not measured.
  constexpr std::int64_t kBytes = 14 << 10, kSharingBytes = 20 << 10, kLongPlane = 200 << 10;
  constexpr std::int64_t kSector = 32, kManyChannels = 92;
  const std::int64_t aligned_to = channels <= kManyChannels ? kSector / 2 : kSector;
  const bool shares = side == ChannelSide::kSplit && plane_bytes % aligned_to != 0;
  const std::int64_t most = shares && plane_bytes >= kLongPlane ? kSharingBytes : kBytes;
  constexpr int kLeastLog2 = 5, kMostLog2 = 9;  // at least a warp's words
  const int least = !shares ? kLeastLog2 : channels <= kManyChannels ? kLeastLog2 + 2 : kLeastLog2 + 1;
  constexpr double kLeastFill = 0.75;  // of the CTAs of a plane
  const auto fits = [&](int log2) {
    const std::int64_t piece = std::int64_t{1} << log2;
    const std::int64_t rounded = CeilDiv(words, piece) * piece;
    return channels * kWordBytes * piece <= most &&
           static_cast<double>(words) >= kLeastFill * static_cast<double>(rounded);
  };
  int log2 = kMostLog2;
  while (log2 > least && !fits(log2)) --log2;
  return {.channels = static_cast<int>(channels),
          .words_log2 = log2,
          .pitch = static_cast<int>(channels | 1),
          .divisor = FastDivisor(channels)};
}

bool BeatEqualBoxes(const TileWalk& walk) {
  constexpr std::int64_t kLeastChannels = 16, kLeastPixels = 2048;
  return walk.ny >= kLeastChannels && walk.nx >= kLeastPixels;
}

}  // namespace warpline
