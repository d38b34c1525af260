#include "kernels/transpose/channel_words.h"

#include <limits>

#include "kernels/ceil_div.h"
#include "kernels/transpose/swizzle.h"

namespace warpline {
namespace {

constexpr std::int64_t kWordBytes = 4;
// These limits come from permutes with channels on an H200 (docs/benchmarks/history.md#2026-11-25-channels
// and docs/benchmarks/2026-11-26-h200-planes.md). With fewer channels, boxes are as fast. More channels, up
// to where tiles are full, were either not measured, or boxes were as fast, or the words do not fit into the
// shared memory available without opt-in.
constexpr std::int64_t kMinSplit = 4, kMinUnalignedChannels = 5, kMaxSplit = 190, kMaxSplitWords = 24;
constexpr std::int64_t kMinJoined = 5, kMaxJoined = 188, kMaxJoined16Bit = 128;
// The number of words of a plane that keeps most threads busy.
constexpr std::int64_t kMinWords = 128;

bool AreMultiples(const std::int64_t (&strides)[kMaxRank], int rank, std::int64_t factor) {
  for (int axis = 0; axis < rank; ++axis) {
    if (strides[axis] % factor != 0) return false;
  }
  return true;
}

// The minimum bytes of a matrix that give CTAs of words enough work.
constexpr std::int64_t kMinBytes = 24 << 10, kMinSectorBytes = 16000;

// True if words are faster for writing unaligned planes. They are not if tiles are full.
bool SuitUnaligned(const TileWalk& walk, std::int64_t element_bytes) {
  constexpr double kFull = 0.91;
  return walk.nx >= kMinUnalignedChannels && walk.nx * walk.ny * element_bytes >= kMinBytes &&
         FillOf(walk.nx, OddTile<1>::kTileX) < kFull;
}

// Returns whether words are faster than boxes for splitting 4-byte elements.
bool SuitSplitWords(const TileWalk& walk) {
  const bool chunks = walk.out_stride_x * kWordBytes % kChunkBytes == 0;
  return walk.nx <= kMaxSplitWords &&
         walk.nx * walk.ny * kWordBytes >= (chunks ? kMinBytes : kMinSectorBytes);
}

}  // namespace

bool BeginWithWords(const TileWalk& walk, std::size_t element_bytes, const void* in, const void* out) {
  const auto per_word = static_cast<std::int64_t>(kWordBytes / element_bytes);
  const auto bases = reinterpret_cast<std::uintptr_t>(in) | reinterpret_cast<std::uintptr_t>(out);
  return bases % kWordBytes == 0 && walk.out_stride_x % per_word == 0 &&
         AreMultiples(walk.batch.out_strides, walk.batch.rank, per_word) &&
         AreMultiples(walk.batch.in_strides, walk.batch.rank, per_word);
}

ChannelSide ChannelWordsOf(const TileWalk& walk, std::size_t element_bytes, const void* in, const void* out) {
  if (element_bytes > kWordBytes || walk.in_stride_x != 1 || walk.out_stride_y != 1)
    return ChannelSide::kNone;
  if (reinterpret_cast<std::uintptr_t>(in) % kWordBytes != 0) return ChannelSide::kNone;
  const auto bytes = static_cast<std::int64_t>(element_bytes);
  const auto suits = [&](std::int64_t channels, std::int64_t pixels, std::int64_t plane) {
    // Offsets of planes have 32 bits.
    return pixels * bytes >= kMinWords * kWordBytes &&
           channels * plane * bytes <= std::numeric_limits<std::uint32_t>::max();
  };
  if (walk.in_stride_y == walk.nx && walk.nx >= kMinSplit && walk.nx <= kMaxSplit &&
      suits(walk.nx, walk.ny, walk.out_stride_x)) {
    const bool suit = bytes == kWordBytes
                          ? SuitSplitWords(walk)
                          : BeginWithWords(walk, element_bytes, in, out) || SuitUnaligned(walk, bytes);
    return suit ? ChannelSide::kSplit : ChannelSide::kNone;
  }
  const std::int64_t most_joined = element_bytes == 1 ? kMaxJoined : element_bytes == 2 ? kMaxJoined16Bit : 0;
  if (walk.out_stride_x == walk.ny && walk.ny >= kMinJoined && walk.ny <= most_joined &&
      suits(walk.ny, walk.nx, walk.in_stride_y)) {
    return ChannelSide::kJoined;
  }
  return ChannelSide::kNone;
}

ChannelShare ShareOf(ChannelSide side, std::int64_t channels, std::int64_t words, std::int64_t plane_bytes,
                     bool unaligned) {
  // Choose few words, so that there are many CTAs. But if the written pieces of planes share sectors with
  // others, the pieces should not be short. Planes that begin in the middle of a sector are as fast as
  // aligned ones, unless a piece has only one warp's words. All of this assumes 228 KB of shared memory per
  // multiprocessor. GPUs with 100 KB hold fewer CTAs; this was not measured.
  constexpr std::int64_t kBytes = 14 << 10, kSharingBytes = 20 << 10, kLongPlaneBytes = 200 << 10;
  constexpr std::int64_t kSector = 32, kMaxHalfSectorChannels = 92;
  const std::int64_t aligned_to = channels <= kMaxHalfSectorChannels ? kSector / 2 : kSector;
  const bool shares = side == ChannelSide::kSplit && plane_bytes % aligned_to != 0;
  const std::int64_t most = unaligned || (shares && plane_bytes >= kLongPlaneBytes) ? kSharingBytes : kBytes;
  constexpr int kMinLog2 = 5, kMaxLog2 = 9;  // at least the words of one warp
  const int least = !shares ? kMinLog2 : channels <= kMaxHalfSectorChannels ? kMinLog2 + 2 : kMinLog2 + 1;
  constexpr double kMinFill = 0.75;  // minimum use of the CTAs of a plane
  const auto fits = [&](int log2) {
    constexpr std::int64_t kWarp = ChannelShare::kWarpWords;
    const std::int64_t piece = unaligned ? ((kWarp - 1) << log2) / kWarp : std::int64_t{1} << log2;
    return (channels * kWordBytes) << log2 <= most && FillOf(words, piece) >= kMinFill;
  };
  int log2 = kMaxLog2;
  while (log2 > least && !fits(log2)) --log2;
  return {.channels = static_cast<int>(channels),
          .words_log2 = log2,
          .pitch = static_cast<int>(channels | 1),
          .divisor = FastDivisor(channels)};
}

}  // namespace warpline
