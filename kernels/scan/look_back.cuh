// How CTAs exchange the combined values before a tile: decoupled look-back. D. Merrill, M. Garland,
// "Single-pass Parallel Prefix Scan with Decoupled Look-back", 2016. Here the order of combination depends
// only on the shape.
#ifndef WARPLINE_KERNELS_SCAN_LOOK_BACK_CUH_
#define WARPLINE_KERNELS_SCAN_LOOK_BACK_CUH_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/scan/vectors.cuh"

namespace warpline::scan {

// Tiles per group, and groups per supergroup. One warp reads a group of tiles at once.
inline constexpr int kTileGroup = 32;

// A value that other CTAs wait for. It consists of 64-bit words; each has 32 bits of the value (half of it,
// or all) and a flag. The flag and its 32 bits are written at once, so no fence is needed. All words are 0
// before a launch.
template <typename T>
struct Published {
  static constexpr int kWords = static_cast<int>(sizeof(T) / 4);
  std::uint64_t words[kWords];

  // Returns true if all words had been written when they were read.
  __device__ __forceinline__ bool IsReady() const {
    bool ready = true;
#pragma unroll
    for (int w = 0; w < kWords; ++w) ready = ready && (words[w] & 1) != 0;
    return ready;
  }
  __device__ __forceinline__ T Value() const {
    std::uint32_t halves[kWords];
#pragma unroll
    for (int w = 0; w < kWords; ++w) halves[w] = static_cast<std::uint32_t>(words[w] >> 32);
    T value;
    memcpy(&value, halves, sizeof(T));
    return value;
  }
  // Volatile accesses bypass the L1.
  __device__ __forceinline__ void ReadFrom(const Published* from) {
#pragma unroll
    for (int w = 0; w < kWords; ++w) words[w] = static_cast<const volatile std::uint64_t*>(from->words)[w];
  }
  static __device__ __forceinline__ void Write(Published* to, T value) {
    std::uint32_t halves[kWords];
    memcpy(halves, &value, sizeof(T));
#pragma unroll
    for (int w = 0; w < kWords; ++w) {
      static_cast<volatile std::uint64_t*>(to->words)[w] = std::uint64_t{halves[w]} << 32 | 1;
    }
  }
  // Returns a value that is ready from the start.
  static __device__ __forceinline__ Published Ready(T value) {
    Published published;
    std::uint32_t halves[kWords];
    memcpy(halves, &value, sizeof(T));
#pragma unroll
    for (int w = 0; w < kWords; ++w) published.words[w] = std::uint64_t{halves[w]} << 32 | 1;
    return published;
  }
};

// The workspace of tiles that look back: a ticket counter, and for each lane of the scan (a row, or a strip
// of columns) `tiles` totals of tiles, `groups` totals of groups and `chain` prefixes. Group totals exist
// only if there are supergroups.
struct LookBackLayout {
  std::int64_t lanes = 1, tiles = 1, groups = 0, chain = 0;
  int values = 1;  // number of values per entry

  WARPLINE_HOST_DEVICE bool IsNeeded() const { return tiles > 1; }
  std::int64_t Entries() const { return lanes * (tiles + groups + chain); }
};
inline constexpr std::size_t kTicketBytes = 16;

template <typename T>
struct LookBack {
  unsigned long long* ticket = nullptr;  // null: a CTA's number is also that of its tile
  Published<T>*tiles = nullptr, *groups = nullptr, *chain = nullptr;
};

// Returns the number of this CTA's tile. CTAs with smaller numbers have begun, so they can be waited for.
template <typename T>
__device__ __forceinline__ std::int64_t TakeTicket(const LookBack<T>& look_back, std::int64_t first_block) {
  if (look_back.ticket == nullptr) return first_block + blockIdx.x;
  return static_cast<std::int64_t>(atomicAdd(look_back.ticket, 1ull));
}

// Called by one warp. Publishes the total of a tile and returns the combination of all earlier tiles of the
// row. The pointers are those of the row.
template <typename T, typename Op>
__device__ T PrefixOfTile(const LookBack<T>& row, std::int64_t tile, T total, int lane) {
  if (lane == 0) Published<T>::Write(row.tiles + tile, total);
  const std::int64_t group = tile / kTileGroup, link = group / kTileGroup;
  const int in_group = static_cast<int>(tile % kTileGroup), in_link = static_cast<int>(group % kTileGroup);
  Published<T> tile_total = Published<T>::Ready(Op::kIdentity);
  Published<T> group_total = tile_total, link_prefix = tile_total;
  bool awaits_tile = lane < in_group, awaits_group = lane<in_link, awaits_link = link> 0;
  // Issue all three loads before the first result is used.
  const auto poll = [&] {
    if (awaits_tile) tile_total.ReadFrom(row.tiles + group * kTileGroup + lane);
    if (awaits_group) group_total.ReadFrom(row.groups + link * kTileGroup + lane);
    if (awaits_link) link_prefix.ReadFrom(row.chain + link - 1);
    awaits_tile = !tile_total.IsReady();
    awaits_group = !group_total.IsReady();
    awaits_link = !link_prefix.IsReady();
  };
  do {
    poll();
  } while (__any_sync(kAllLanes, awaits_tile));
  const T tiles_before = ReduceLanes<T, Op>(tile_total.Value());
  if (in_group == kTileGroup - 1 && lane == 0) {
    Published<T>::Write(row.groups + group, Op::Apply(tiles_before, total));
  }
  while (__any_sync(kAllLanes, awaits_group || awaits_link)) poll();
  const T groups_before = ReduceLanes<T, Op>(group_total.Value());
  const T prefix = Op::Apply(link_prefix.Value(), Op::Apply(groups_before, tiles_before));
  if (in_group == kTileGroup - 1 && in_link == kTileGroup - 1 && lane == 0) {
    Published<T>::Write(row.chain + link, Op::Apply(prefix, total));
  }
  return prefix;
}

}  // namespace warpline::scan

#endif  // WARPLINE_KERNELS_SCAN_LOOK_BACK_CUH_
