// Variants `split_words` and `joined_words`: matrices with one short, contiguous side of any length
// (channel_words.h). A thread takes the pixels that share one word of a plane, and assembles words of their
// channels in registers. On the interleaved side the words of a thread are contiguous. They go through shared
// memory, so that the lanes of a warp access contiguous global memory there too.
//
// Limit: instructions: 40 to 53 per warp for each word of its lanes; and sectors that pieces of planes share.
#include <cuda_pipeline_primitives.h>

#include <type_traits>

#include "kernels/launch_grids.h"
#include "kernels/transpose/channel_words.h"
#include "kernels/transpose/kernels.h"
#include "kernels/transpose/packed_box.h"

namespace warpline {
namespace {

constexpr int kThreads = 128;
// A multiprocessor has registers for this many CTAs of SplitUnaligned. By default the compiler would use
// registers so that only four fit.
constexpr int kUnalignedCtas = 6;

// The type of an element that is smaller than a word.
template <int kBytes>
using Element = std::conditional_t<kBytes == 1, std::uint8_t, std::uint16_t>;

// Copies a word to shared memory. If it extends beyond `end`, copies only the elements before that.
template <int kBytes>
__device__ void CopyWord(std::uint32_t* to, const char* from, const char* end) {
  if (from + 4 <= end) {
    __pipeline_memcpy_async(to, from, 4);
    return;
  }
  for (int i = 0; from + (i + 1) * kBytes <= end; ++i) {
    reinterpret_cast<Element<kBytes>*>(to)[i] = reinterpret_cast<const Element<kBytes>*>(from)[i];
  }
}

// Calls use(i, place) for each of `count` contiguous words: i is its index in global memory, `place` its
// position in shared memory. Uses additions, because PlaceOf would take up to 4 % longer for even numbers of
// channels.
template <typename Use>
__device__ void ForWordsSideBySide(const ChannelShare& share, int count, Use use) {
  const int thread = static_cast<int>(threadIdx.x);
  if (share.pitch == share.channels) {
#pragma unroll 8
    for (int i = thread; i < count; i += kThreads) use(i, i);
    return;
  }
  // After the interleaved words of each plane word follows one word of padding.
  const int owners = kThreads / share.channels, rest = kThreads % share.channels;
  int owner = thread / share.channels, of_owner = thread % share.channels;
#pragma unroll 4
  for (int i = thread; i < count; i += kThreads) {
    use(i, i + owner);
    owner += owners;
    of_owner += rest;
    if (of_owner >= share.channels) {
      of_owner -= share.channels;
      ++owner;
    }
  }
}

// Calls use(word, begin, end) for words of planes and a range of their groups of channels. If there are fewer
// words than threads, threads share the groups of a word.
template <int kBytes, typename Use>
__device__ void ForGroups(const ChannelShare& share, int pixels, Use use) {
  using Word = WordOfPixels<kBytes>;
  const int thread = static_cast<int>(threadIdx.x);
  const int groups = Word::Groups(share.channels);
  const int parts = max(1, kThreads >> share.words_log2);
  const int each = (groups + parts - 1) / parts;
  const int begin = (thread >> share.words_log2) * each;
  for (int word = thread & (share.Words() - 1); word * Word::kPixels < pixels; word += kThreads) {
    if (parts > 1) {
      if (begin < groups) use(word, begin, min(groups, begin + each));
      break;
    }
    use(word, 0, groups);
  }
}

// y is the axis of the channels, which become contiguous.
template <int kBytes>
__global__ void __launch_bounds__(kThreads)
    JoinChannelWords(const char* __restrict__ in, char* __restrict__ out, const char* end,
                     const __grid_constant__ TileWalk walk, const ChannelShare share,
                     std::int64_t first_tile) {
  extern __shared__ std::uint32_t planes[];
  using Word = WordOfPixels<kBytes>;
  const int thread = static_cast<int>(threadIdx.x), row = share.Row();
  const int most = share.Words() * Word::kPixels;
  const TileOrigin origin = LocateTile(walk, first_tile + blockIdx.x, most, share.channels);
  const auto pixels = static_cast<int>(min(std::int64_t{most}, walk.nx - origin.x));
  std::uint32_t* joined = planes + share.channels * row;
  const char* from = in + (origin.in + origin.x) * kBytes;
  const auto plane = static_cast<std::uint32_t>(walk.in_stride_y * kBytes);
  const auto low = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(from)) % 4;
  const bool aligned = (low | plane) % 4 == 0;
  // Returns the offset of the word of plane c, counted from the word that contains `from`.
  const auto offset_of = [=](int c, int word) {
    const std::uint32_t begin = low + static_cast<std::uint32_t>(c) * plane;
    return (begin & ~3u) + static_cast<std::uint32_t>(word) * 4;
  };
  const char* words_from = from - low;
  const int parts = max(1, kThreads >> share.words_log2);
  const std::uint32_t last = offset_of(share.channels - 1, share.Words());
  if (pixels == most && words_from + last + 4 <= end) {
    for (int word = thread & (share.Words() - 1); word < share.Words(); word += kThreads) {
#pragma unroll 4
      for (int c = thread >> share.words_log2 & (parts - 1); c < share.channels; c += parts) {
        __pipeline_memcpy_async(planes + c * row + word, words_from + offset_of(c, word), 4);
      }
    }
    for (int c = thread; !aligned && c < share.channels; c += kThreads) {
      __pipeline_memcpy_async(planes + c * row + share.Words(), words_from + offset_of(c, share.Words()), 4);
    }
  } else {
    for (int i = thread; i < share.channels * row; i += kThreads) {
      const int c = i / row, word = i % row;
      const std::uint32_t skipped = (low + static_cast<std::uint32_t>(c) * plane) % 4;
      if (word * 4 < static_cast<int>(skipped) + pixels * kBytes) {
        CopyWord<kBytes>(planes + i, words_from + offset_of(c, word), end);
      }
    }
  }
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  ForGroups<kBytes>(share, pixels, [&](int word, int begin_group, int end_group) {
    const std::uint32_t* column = planes + word;
    const auto store = [mine = joined + word * share.pitch](int i, std::uint32_t value) { mine[i] = value; };
    if (aligned) {
      Word::Join(
          share.channels, begin_group, end_group, [=](int c) { return column[c * row]; }, store);
      return;
    }
    Word::Join(
        share.channels, begin_group, end_group,
        [=](int c) {
          const std::uint32_t* at = column + c * row;
          // The hardware takes the shift modulo 32.
          return __funnelshift_r(at[0], at[1], 8 * (low + static_cast<std::uint32_t>(c) * plane));
        },
        store);
  });
  __syncthreads();
  char* to = out + (origin.out + origin.x * share.channels) * kBytes;
  const auto skipped = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(to) % 4);
  const RowEnds ends =
      EndsOfRow<kBytes>(static_cast<std::uint32_t>(pixels * share.channels * kBytes), skipped);
  auto* words = reinterpret_cast<std::uint32_t*>(to - skipped);
  const auto first = static_cast<int>(ends.first_word), end_word = static_cast<int>(ends.end_word);
  if (skipped == 0) {
    ForWordsSideBySide(share, end_word, [&](int i, int place) { words[i] = joined[place]; });
  } else {
#pragma unroll 4
    for (int i = first + thread; i < end_word; i += kThreads) {
      words[i] = __funnelshift_r(joined[share.PlaceOf(i - 1)], joined[share.PlaceOf(i)], 32 - 8 * skipped);
    }
  }
  // Stores elements at both ends that do not fill a word.
  const auto store = [&](int element) {
    const int byte = element * kBytes;
    const auto* word = reinterpret_cast<const char*>(joined + share.PlaceOf(byte / 4));
    *reinterpret_cast<Element<kBytes>*>(to + byte) =
        *reinterpret_cast<const Element<kBytes>*>(word + byte % 4);
  };
  if (thread < static_cast<int>(ends.head)) store(thread);
  if (ends.tail + thread < ends.count) store(static_cast<int>(ends.tail) + thread);
}

// Copies contiguous words of pixels, from `pixels` on, to shared memory.
__device__ void LoadPixels(const char* pixels, const ChannelShare& share, int words, std::uint32_t* joined) {
  const auto* from = reinterpret_cast<const std::uint32_t*>(pixels);
  ForWordsSideBySide(share, words,
                     [&](int i, int place) { __pipeline_memcpy_async(joined + place, from + i, 4); });
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
}

// x is the axis of the channels, which are contiguous. Planes, and the pixels of each matrix, begin on word
// boundaries.
template <int kBytes>
__global__ void __launch_bounds__(kThreads)
    SplitIntoWords(const char* __restrict__ in, char* __restrict__ out, const __grid_constant__ TileWalk walk,
                   const ChannelShare share, std::int64_t first_tile) {
  extern __shared__ std::uint32_t joined[];
  using Word = WordOfPixels<kBytes>;
  const int most = share.Words() * Word::kPixels;
  const TileOrigin origin = LocateTile(walk, first_tile + blockIdx.x, share.channels, most);
  const auto pixels = static_cast<int>(min(std::int64_t{most}, walk.ny - origin.y));
  LoadPixels(in + (origin.in + origin.y * share.channels) * kBytes, share,
             pixels * share.channels * kBytes / 4, joined);
  const auto plane = static_cast<std::uint32_t>(walk.out_stride_x * kBytes);
  char* to = out + (origin.out + origin.y) * kBytes;
  ForGroups<kBytes>(share, pixels, [&](int word, int begin_group, int end_group) {
    const std::uint32_t* mine = joined + word * share.pitch;
    const std::uint32_t first = static_cast<std::uint32_t>(word) * 4;
    Word::Split(
        share.channels, begin_group, end_group, [mine](int i) { return mine[i]; },
        [=](int c, std::uint32_t value) {
          *reinterpret_cast<std::uint32_t*>(to + (static_cast<std::uint32_t>(c) * plane + first)) = value;
        });
  });
}

// Stores the first `bytes` bytes of a word, at most the whole word.
template <int kBytes>
__device__ void StoreElements(char* to, std::uint32_t word, int bytes) {
#pragma unroll 1  // few lanes need it
  for (int i = 0; i < min(bytes, 4); i += kBytes) {
    *reinterpret_cast<Element<kBytes>*>(to + i) = static_cast<Element<kBytes>>(word >> (8 * i));
  }
}

// For unaligned planes: a word of a plane is assembled from the words of two neighbouring lanes. So a warp
// reads one word more than it stores. The lanes' data begins at the first pixel of the matrix that lies on a
// word boundary of the input.
template <int kBytes>
__global__ void __launch_bounds__(kThreads, kUnalignedCtas)
    SplitUnaligned(const char* __restrict__ in, char* __restrict__ out, const __grid_constant__ TileWalk walk,
                   const ChannelShare share, std::int64_t first_tile) {
  extern __shared__ std::uint32_t joined[];
  using Word = WordOfPixels<kBytes>;
  constexpr int kLanes = ChannelShare::kWarpWords;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kLanes;
  const int each = share.UnalignedWords() * Word::kPixels;
  const TileOrigin origin = LocateTile(walk, first_tile + blockIdx.x, share.channels, each);
  const char* from = in + (origin.in + origin.y * share.channels) * kBytes;
  char* to = out + (origin.out + origin.y) * kBytes;
  const auto plane = static_cast<std::uint32_t>(walk.out_stride_x * kBytes);
  const int pixel_bytes = share.channels * kBytes;
  // One of the first four pixels does, because the input begins on a word boundary, and matrices are whole
  // pixels apart.
  int before = 0;
  while (reinterpret_cast<std::uintptr_t>(from + before * pixel_bytes) % 4 != 0) ++before;
  for (int i = thread; origin.y == 0 && i < before * share.channels; i += kThreads) {
    const int pixel = i / share.channels, c = i % share.channels;
    reinterpret_cast<Element<kBytes>*>(to + static_cast<std::uint32_t>(c) * plane)[pixel] =
        reinterpret_cast<const Element<kBytes>*>(from)[i];
  }
  const auto pixels = static_cast<int>(min(std::int64_t{each + Word::kPixels}, walk.ny - origin.y - before));
  if (pixels <= 0) return;
  from += before * pixel_bytes;
  const int in_bytes = pixels * pixel_bytes, in_words = in_bytes / 4;
  if (thread == 0 && in_bytes % 4 != 0) {
    CopyWord<kBytes>(joined + share.PlaceOf(in_words), from + in_words * 4, from + in_bytes);
  }
  LoadPixels(from, share, in_words, joined);
  to += before * kBytes;
  const int bytes = pixels * kBytes;
  const auto low = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(to));
  // Shares the groups as in ForGroups, but all lanes of a warp take part, because they exchange words.
  const int groups = Word::Groups(share.channels), parts = max(1, kThreads >> share.words_log2);
  const int of_part = (groups + parts - 1) / parts;
  const int begin_group = (thread >> share.words_log2) * of_part;
  const int end_group = min(groups, begin_group + of_part);
  if (begin_group >= groups) return;
  for (int i = thread & (share.Words() - 1); i < share.Words(); i += kThreads) {
    const int word = i / kLanes * (kLanes - 1) + lane, of_warp = word - lane;
    if (of_warp * Word::kPixels >= pixels) break;
    const std::uint32_t* mine = joined + word * share.pitch;
    const auto load = [mine](int k) { return mine[k]; };
    // Calls store(offset of the plane, offset of a word boundary in it, the lane's own word, the word to
    // store there).
    const auto split = [&](auto store) {
      Word::Split(share.channels, begin_group, end_group, load, [=](int c, std::uint32_t has) {
        const std::uint32_t row = static_cast<std::uint32_t>(c) * plane, begin = (0 - low - row) % 4;
        store(row, begin, has, __funnelshift_r(has, __shfl_down_sync(0xffffffffu, has, 1), 8 * begin));
      });
    };
    if (origin.y + of_warp > 0 && (of_warp + kLanes) * 4 <= bytes) {
      split([=](std::uint32_t row, std::uint32_t begin, std::uint32_t, std::uint32_t value) {
        if (lane == kLanes - 1) return;
        *reinterpret_cast<std::uint32_t*>(to + (row + begin + static_cast<std::uint32_t>(word) * 4)) = value;
      });
    } else {
      split([=](std::uint32_t row, std::uint32_t begin, std::uint32_t has, std::uint32_t value) {
        const int at = static_cast<int>(begin) + word * 4;
        if (origin.y == 0 && word == 0) StoreElements<kBytes>(to + row, has, min(at, bytes));
        if (lane == kLanes - 1) return;
        if (at + 4 <= bytes) {
          *reinterpret_cast<std::uint32_t*>(to + row + at) = value;
        } else {
          StoreElements<kBytes>(to + row + at, value, bytes - at);
        }
      });
    }
    if (parts > 1) break;
  }
}

template <int kBytes>
cudaError_t LaunchJoin(TileWalk walk, std::int64_t in_bytes, const void* in, void* out, cudaStream_t stream) {
  constexpr std::int64_t kPerWord = WordOfPixels<kBytes>::kPixels;
  const std::int64_t channels = walk.ny;
  const ChannelShare share = ShareOf(ChannelSide::kJoined, channels, CeilDiv(walk.nx, kPerWord),
                                     walk.in_stride_y * kBytes, /*unaligned=*/false);
  walk.CutInto(share.Words() * kPerWord, channels);
  const auto bytes = static_cast<std::size_t>(share.Words() * share.pitch + channels * share.Row()) * 4;
  const auto* from = static_cast<const char*>(in);
  return LaunchGrids(walk.Tiles(), [&](std::int64_t first, unsigned grid) {
    JoinChannelWords<kBytes><<<grid, kThreads, bytes, stream>>>(from, static_cast<char*>(out),
                                                                from + in_bytes, walk, share, first);
  });
}

template <int kBytes>
cudaError_t LaunchSplit(TileWalk walk, const void* in, void* out, cudaStream_t stream) {
  constexpr std::int64_t kPerWord = WordOfPixels<kBytes>::kPixels;
  const bool unaligned = kBytes < 4 && !BeginWithWords(walk, kBytes, in, out);
  const ChannelShare share = ShareOf(ChannelSide::kSplit, walk.nx, CeilDiv(walk.ny, kPerWord),
                                     walk.out_stride_x * kBytes, unaligned);
  walk.CutInto(walk.nx, (unaligned ? share.UnalignedWords() : share.Words()) * kPerWord);
  // One extra word, which is read after the last one.
  const auto bytes = static_cast<std::size_t>(share.Words() * share.pitch + 1) * 4;
  auto* kernel = &SplitIntoWords<kBytes>;
  if constexpr (kBytes < 4) {
    if (unaligned) kernel = &SplitUnaligned<kBytes>;
  }
  return LaunchGrids(walk.Tiles(), [&](std::int64_t first, unsigned grid) {
    kernel<<<grid, kThreads, bytes, stream>>>(static_cast<const char*>(in), static_cast<char*>(out), walk,
                                              share, first);
  });
}

}  // namespace

cudaError_t LaunchChannelWords(ChannelSide side, const TileWalk& walk, std::size_t element_bytes,
                               std::int64_t in_bytes, const void* in, void* out, cudaStream_t stream) {
  const bool splits = side == ChannelSide::kSplit;
  switch (element_bytes) {
    case 1:
      return splits ? LaunchSplit<1>(walk, in, out, stream) : LaunchJoin<1>(walk, in_bytes, in, out, stream);
    case 2:
      return splits ? LaunchSplit<2>(walk, in, out, stream) : LaunchJoin<2>(walk, in_bytes, in, out, stream);
    case 4:
      return splits ? LaunchSplit<4>(walk, in, out, stream) : cudaErrorNotSupported;
    default:
      return cudaErrorNotSupported;
  }
}

}  // namespace warpline
