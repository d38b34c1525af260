// Variant `blocks`: sorts each row on one SM.
//
// Rows of up to 256 elements are sorted in the registers of a warp, or of a part of one, by a bitonic
// network. Longer rows take a CTA and a radix sort in shared memory: a stable counting sort for each 8 bits
// of the keys. Elements carry their place in the row, so the order of equal elements is kept.
//
// Limit: the instructions that rank each element among the elements of its warp, and bank conflicts.
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/allow_shared_bytes.h"
#include "kernels/ceil_div.h"
#include "kernels/launch_grids.h"
#include "kernels/sort/kernels.h"
#include "kernels/sort/keys.h"

namespace warpline {
namespace {

constexpr int kWarpSize = 32;
constexpr unsigned kAllLanes = 0xffff'ffff;
constexpr int kPlaceBits = 13;
static_assert(kMaxBlockRow <= 1 << kPlaceBits);

// The rows of a sort. The address of a result is null if it is not requested.
struct BlockRows {
  const void* x;
  void* values;
  std::int64_t* indices;
  std::int64_t rows;
  int count, taken;
  int element_bytes;
  // A sort item that is a single integer has the position in its lowest place_bits bits, and the key above
  // them. 0: the key alone.
  int place_bits;
  KeyRule rule;
};

// Calls f with the unsigned type of the elements. Keys of up to 4 bytes use a 4-byte integer.
template <bool kWide, typename F>
__device__ __forceinline__ void VisitElements(int element_bytes, F&& f) {
  if constexpr (kWide) {
    f(std::uint64_t{});
  } else if (element_bytes == 4) {
    f(std::uint32_t{});
  } else if (element_bytes == 2) {
    f(std::uint16_t{});
  } else {
    f(std::uint8_t{});
  }
}

// Writes the result at a position of a row. The element is made from its key, unless the element is a zero or
// NaN whose bits matter.
template <typename U>
__device__ __forceinline__ void StoreResult(const BlockRows& rows, std::int64_t row, int position, U key,
                                            unsigned place) {
  const std::int64_t at = row * rows.taken + position;
  if (rows.values != nullptr) {
    U bits = ElementOf(key, rows.rule);
    if (rows.indices != nullptr && rows.rule.infinity != 0) {
      const U zero = KeyOf(U{0}, rows.rule), nan = rows.rule.nan_first ? U{0} : static_cast<U>(~U{0});
      if (key == zero || key == nan) bits = static_cast<const U*>(rows.x)[row * rows.count + place];
    }
    static_cast<U*>(rows.values)[at] = bits;
  }
  if (rows.indices != nullptr) rows.indices[at] = place;
}

// Sort items. A missing item comes after all others.

// A 64-bit key with its place.
struct KeyPlace {
  std::uint64_t key;
  unsigned place;
};

template <typename Item>
__device__ __forceinline__ Item AbsentItem() {
  return static_cast<Item>(~Item{0});
}
template <>
__device__ __forceinline__ KeyPlace AbsentItem<KeyPlace>() {
  return {~std::uint64_t{0}, ~0u};
}

template <typename Item, typename U>
__device__ __forceinline__ Item MakeItem(U key, unsigned place, int place_bits) {
  if constexpr (std::is_same_v<Item, KeyPlace>) {
    return {key, place};
  } else {
    return place_bits == 0 ? Item{key} : Item{key} << place_bits | place;
  }
}

template <typename U, typename Item>
__device__ __forceinline__ U KeyOfItem(const Item& item, int place_bits) {
  if constexpr (std::is_same_v<Item, KeyPlace>) {
    return static_cast<U>(item.key);
  } else {
    return static_cast<U>(item >> place_bits);
  }
}

template <typename Item>
__device__ __forceinline__ unsigned PlaceOfItem(const Item& item) {
  if constexpr (std::is_same_v<Item, KeyPlace>) {
    return item.place;
  } else {
    return static_cast<unsigned>(item) & ((1u << kPlaceBits) - 1);
  }
}

template <typename Item>
__device__ __forceinline__ bool ComesBefore(const Item& a, const Item& b) {
  if constexpr (std::is_same_v<Item, KeyPlace>) {
    return a.key != b.key ? a.key < b.key : a.place < b.place;
  } else {
    return a < b;
  }
}

template <typename Item>
__device__ __forceinline__ Item OfLane(const Item& item, int lane_mask) {
  if constexpr (std::is_same_v<Item, KeyPlace>) {
    return {__shfl_xor_sync(kAllLanes, item.key, lane_mask),
            __shfl_xor_sync(kAllLanes, item.place, lane_mask)};
  } else {
    return __shfl_xor_sync(kAllLanes, item, lane_mask);
  }
}

// Rows in warps.

constexpr int kWarpRowThreads = 128;

// Item i of a lane is at position i * 32 + lane of the row. With one item per lane a warp has several rows of
// `width` lanes, a power of two.
template <typename Item, int kItems>
__global__ void __launch_bounds__(kWarpRowThreads)
    SortRowsInWarps(BlockRows rows, std::int64_t first_block, int width) {
  const int lane = threadIdx.x % width;
  const std::int64_t row = (first_block + blockIdx.x) * (kWarpRowThreads / width) + threadIdx.x / width;
  const bool has_row = row < rows.rows;
  constexpr bool kWide = std::is_same_v<Item, KeyPlace>;
  Item items[kItems];
  const auto load = [&]<typename U>(U) {
    const U* const x = static_cast<const U*>(rows.x) + row * rows.count;
    U bits[kItems];
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      const int place = i * kWarpSize + lane;
      bits[i] = has_row && place < rows.count ? x[place] : U{0};
    }
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      const int place = i * kWarpSize + lane;
      items[i] = has_row && place < rows.count ? MakeItem<Item>(KeyOf(bits[i], rows.rule),
                                                                static_cast<unsigned>(place), rows.place_bits)
                                               : AbsentItem<Item>();
    }
  };
  VisitElements<kWide>(rows.element_bytes, load);

  for (int size = 2; size <= width * kItems; size *= 2) {
#pragma unroll
    for (int step = kItems / 2; step >= 1; step /= 2) {
      if (2 * step * kWarpSize > size) continue;
#pragma unroll
      for (int i = 0; i < kItems; ++i) {
        if ((i & step) != 0) continue;
        const bool ascending = ((i * kWarpSize) & size) == 0;
        const Item low = items[i], high = items[i + step];
        if (ComesBefore(high, low) == ascending) {
          items[i] = high;
          items[i + step] = low;
        }
      }
    }
    for (int stride = size < kWarpSize ? size / 2 : kWarpSize / 2; stride >= 1; stride /= 2) {
#pragma unroll
      for (int i = 0; i < kItems; ++i) {
        const Item other = OfLane(items[i], stride);
        const bool ascending = ((i * kWarpSize + lane) & size) == 0;
        const bool keeps_first = ascending == ((lane & stride) == 0);
        if (ComesBefore(other, items[i]) == keeps_first) items[i] = other;
      }
    }
  }

  VisitElements<kWide>(rows.element_bytes, [&]<typename U>(U) {
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      const int position = i * kWarpSize + lane;
      if (has_row && position < rows.taken) {
        StoreResult(rows, row, position, KeyOfItem<U>(items[i], rows.place_bits), PlaceOfItem(items[i]));
      }
    }
  });
}

// Rows in CTAs.

constexpr int kDigitBits = 8;
constexpr int kDigits = 1 << kDigitBits;
constexpr int kTagBits = 16;  // bits of a place in a tag

// Returns the lanes that have the same digit.
__device__ __forceinline__ unsigned PeersOf(unsigned digit) {
  unsigned peers = kAllLanes;
#pragma unroll
  for (int bit = 0; bit < kDigitBits; ++bit) {
    const bool is_set = (digit >> bit & 1) != 0;
    const unsigned set = __ballot_sync(kAllLanes, is_set);
    peers &= is_set ? set : ~set;
  }
  return peers;
}

template <typename Key>
__device__ __forceinline__ Key OrOfWarp(Key bits) {
  if constexpr (sizeof(Key) == 8) {
    const unsigned high = __reduce_or_sync(kAllLanes, static_cast<unsigned>(bits >> 32));
    return Key{high} << 32 | __reduce_or_sync(kAllLanes, static_cast<unsigned>(bits));
  } else {
    return __reduce_or_sync(kAllLanes, bits);
  }
}

// The shared memory of a CTA that sorts a row. With kPairs, positions are stored beside the keys. Otherwise
// keys contain them, or they are not requested.
template <typename Key, bool kPairs, int kThreads, int kItems>
struct RowShared {
  static constexpr int kWarps = kThreads / kWarpSize;
  static constexpr int kTile = kThreads * kItems;

  Key keys[kTile];
  Key differing[kWarps];
  unsigned counters[kWarps][kDigits];
  unsigned totals[kWarps];
  std::uint16_t places[kPairs ? kTile : 2];
};

// Replaces the counters of the warps by the positions where the elements of each warp and digit begin. All
// threads call it.
template <int kThreads>
__device__ __forceinline__ void CountersToPositions(unsigned (*counters)[kDigits], unsigned* totals) {
  constexpr int kWarps = kThreads / kWarpSize;
  constexpr int kOwn = kThreads < kDigits ? kDigits / kThreads : 1;  // digits per thread
  constexpr int kScanning = kDigits / kOwn;                          // the threads that have digits
  const int thread = threadIdx.x, warp = thread / kWarpSize, lane = thread % kWarpSize;
  const bool scans = thread < kScanning;
  unsigned counts[kOwn][kWarps];
  unsigned own = 0;
  if (scans) {
#pragma unroll
    for (int digit = 0; digit < kOwn; ++digit) {
#pragma unroll
      for (int w = 0; w < kWarps; ++w) {
        counts[digit][w] = counters[w][thread * kOwn + digit];
        own += counts[digit][w];
      }
    }
  }
  unsigned sum = own;  // including this thread's own
#pragma unroll
  for (int distance = 1; distance < kWarpSize; distance *= 2) {
    const unsigned before = __shfl_up_sync(kAllLanes, sum, distance);
    if (lane >= distance) sum += before;
  }
  if (lane == kWarpSize - 1) totals[warp] = sum;
  __syncthreads();
  if (scans) {
    unsigned position = sum - own;
#pragma unroll
    for (int w = 0; w < kScanning / kWarpSize; ++w) position += w < warp ? totals[w] : 0;
#pragma unroll
    for (int digit = 0; digit < kOwn; ++digit) {
#pragma unroll
      for (int w = 0; w < kWarps; ++w) {
        counters[w][thread * kOwn + digit] = position;
        position += counts[digit][w];
      }
    }
  }
  __syncthreads();
}

// The ranking loop waits for shared memory, so an SM should have at least 24 warps, or 16 for 8-byte keys.
template <typename Key, int kThreads>
inline constexpr int kMinBlocksPerSm = std::max(1, (sizeof(Key) == 8 ? 512 : 768) / kThreads);

// Item i of a lane is at position i * 32 + lane of the part of its warp.
template <typename Key, bool kPairs, int kThreads, int kItems>
__global__ void __launch_bounds__(kThreads, kMinBlocksPerSm<Key, kThreads>)
    SortRowsInBlocks(BlockRows rows, std::int64_t first_block) {
  using Shared = RowShared<Key, kPairs, kThreads, kItems>;
  extern __shared__ std::uint64_t shared_words[];
  Shared& shared = *reinterpret_cast<Shared*>(shared_words);
  const std::int64_t row = first_block + blockIdx.x;
  const int warp = threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize;
  const int first = warp * kWarpSize * kItems + lane;
  constexpr bool kWide = sizeof(Key) == 8;
  Key keys[kItems];
  unsigned tags[kItems];  // the position and, during a pass, the rank above it, in one register
  Key differing = 0;
  const auto load = [&]<typename U>(U) {
    const U* const x = static_cast<const U*>(rows.x) + row * rows.count;
    U bits[kItems];
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      const int place = first + i * kWarpSize;
      bits[i] = place < rows.count ? x[place] : U{0};
    }
    const U reference = KeyOf(x[0], rows.rule);
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      const int place = first + i * kWarpSize;
      const U key = KeyOf(bits[i], rows.rule);
      tags[i] = static_cast<unsigned>(place);
      keys[i] = ~Key{0};
      if (place < rows.count) {
        keys[i] = MakeItem<Key>(key, tags[i], rows.place_bits);
        differing |= Key{static_cast<U>(key ^ reference)} << rows.place_bits;
      }
    }
  };
  VisitElements<kWide>(rows.element_bytes, load);
  differing = OrOfWarp(differing);
  if (lane == 0) shared.differing[warp] = differing;
  __syncthreads();
#pragma unroll
  for (int w = 0; w < Shared::kWarps; ++w) differing |= shared.differing[w];

  unsigned* const counters = shared.counters[warp];
  const unsigned lower_lanes = (1u << lane) - 1;
  const int end_bit = rows.place_bits + 8 * rows.element_bytes;
  for (int shift = rows.place_bits; shift < end_bit; shift += kDigitBits) {
    const auto digit_of = [&](Key key) { return static_cast<unsigned>(key >> shift) & (kDigits - 1); };
    if (digit_of(differing) == 0) continue;
#pragma unroll
    for (int i = 0; i < kDigits / kWarpSize; ++i) counters[i * kWarpSize + lane] = 0;
    __syncwarp();
    // The rank of an element is the number of earlier elements of its warp with the same digit.
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      const unsigned digit = digit_of(keys[i]);
      const unsigned peers = PeersOf(digit), before = __popc(peers & lower_lanes);
      const unsigned earlier = counters[digit];
      tags[i] = (kPairs ? tags[i] : 0) | (earlier + before) << kTagBits;
      __syncwarp();
      if (before == 0) counters[digit] = earlier + __popc(peers);
      __syncwarp();
    }
    __syncthreads();
    CountersToPositions<kThreads>(shared.counters, shared.totals);
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      const unsigned position = counters[digit_of(keys[i])] + (tags[i] >> kTagBits);
      shared.keys[position] = keys[i];
      if constexpr (kPairs) shared.places[position] = static_cast<std::uint16_t>(tags[i]);
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      keys[i] = shared.keys[first + i * kWarpSize];
      if constexpr (kPairs) tags[i] = shared.places[first + i * kWarpSize];
    }
  }

  VisitElements<kWide>(rows.element_bytes, [&]<typename U>(U) {
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      const int position = first + i * kWarpSize;
      const unsigned place = kPairs ? tags[i] : PlaceOfItem(keys[i]);
      if (position < rows.taken) {
        StoreResult(rows, row, position, KeyOfItem<U>(keys[i], rows.place_bits), place);
      }
    }
  });
}

template <typename Item, int kItems>
cudaError_t LaunchInWarps(const BlockRows& rows, cudaStream_t stream) {
  const int width =
      kItems > 1 ? kWarpSize : static_cast<int>(std::bit_ceil(static_cast<unsigned>(rows.count)));
  return LaunchGrids(CeilDiv(rows.rows, kWarpRowThreads / width), [&](std::int64_t first, unsigned grid) {
    SortRowsInWarps<Item, kItems><<<grid, kWarpRowThreads, 0, stream>>>(rows, first, width);
  });
}

template <typename Item>
cudaError_t LaunchInWarps(const BlockRows& rows, cudaStream_t stream) {
  if (rows.count <= kWarpSize) return LaunchInWarps<Item, 1>(rows, stream);
  if (rows.count <= 2 * kWarpSize) return LaunchInWarps<Item, 2>(rows, stream);
  if (rows.count <= 4 * kWarpSize) return LaunchInWarps<Item, 4>(rows, stream);
  return LaunchInWarps<Item, 8>(rows, stream);
}
constexpr int kMaxWarpRow = 8 * kWarpSize;

template <typename Key, bool kPairs, int kThreads, int kItems>
cudaError_t LaunchInBlocks(const BlockRows& rows, cudaStream_t stream) {
  constexpr int kBytes = sizeof(RowShared<Key, kPairs, kThreads, kItems>);
  const auto kernel = SortRowsInBlocks<Key, kPairs, kThreads, kItems>;
  if (cudaError_t error = AllowSharedBytes(kernel, kBytes); error != cudaSuccess) return error;
  return LaunchGrids(rows.rows, [&](std::int64_t first, unsigned grid) {
    kernel<<<grid, kThreads, kBytes, stream>>>(rows, first);
  });
}

template <typename Key, bool kPairs>
cudaError_t LaunchInBlocks(const BlockRows& rows, cudaStream_t stream) {
  if (rows.count <= 512) return LaunchInBlocks<Key, kPairs, 64, 8>(rows, stream);
  if (rows.count <= 1024) return LaunchInBlocks<Key, kPairs, 64, 16>(rows, stream);
  if (rows.count <= 2048) return LaunchInBlocks<Key, kPairs, 128, 16>(rows, stream);
  if (rows.count <= 4096) return LaunchInBlocks<Key, kPairs, 256, 16>(rows, stream);
  return LaunchInBlocks<Key, kPairs, 512, 16>(rows, stream);
}

}  // namespace

cudaError_t LaunchSortBlocks(const SortProblem& problem, const Operands& operands, const CudaContext&,
                             cudaStream_t stream) {
  if (problem.count > kMaxBlockRow) return cudaErrorNotSupported;
  if (problem.rows == 0 || problem.taken == 0 || !(problem.values || problem.indices)) return cudaSuccess;
  BlockRows rows{.x = operands.in[0],
                 .values = problem.values ? operands.out : nullptr,
                 .indices = nullptr,
                 .rows = problem.rows,
                 .count = static_cast<int>(problem.count),
                 .taken = static_cast<int>(problem.taken),
                 .element_bytes = static_cast<int>(SizeOf(problem.dtype)),
                 .place_bits = 0,
                 .rule = KeyRuleOf(problem)};
  if (problem.indices) {
    rows.indices = static_cast<std::int64_t*>(problem.values ? operands.further[0] : operands.out);
  }
  const bool in_warps = rows.count <= kMaxWarpRow;
  if (rows.element_bytes == 8) {
    return in_warps ? LaunchInWarps<KeyPlace>(rows, stream)
                    : LaunchInBlocks<std::uint64_t, true>(rows, stream);
  }
  if (problem.indices && (rows.element_bytes <= 2 || in_warps)) rows.place_bits = kPlaceBits;
  const bool fits_word = 8 * rows.element_bytes + rows.place_bits <= 32;
  if (in_warps) {
    return fits_word ? LaunchInWarps<std::uint32_t>(rows, stream)
                     : LaunchInWarps<std::uint64_t>(rows, stream);
  }
  return problem.indices && rows.place_bits == 0 ? LaunchInBlocks<std::uint32_t, true>(rows, stream)
                                                 : LaunchInBlocks<std::uint32_t, false>(rows, stream);
}

}  // namespace warpline
