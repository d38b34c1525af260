// Scans. Every addition has its place in a tree that depends on the shape only, so that results have the same
// bits from run to run, and at every alignment. Five kernels share the work:
//   ScanShortRows: a few lanes for each row.
//   ScanRows:      one to eight warps for each row, which they scan tile by tile.
//   ScanTiles:     a CTA for each tile of a few long rows. Tiles look back at the tiles before them.
//   ScanColumns:   a thread for each column, or for neighbouring columns.
//   ScanStrips:    a CTA for each tile of a few long columns. Tiles look back as well.
//
// Limit: device memory, which each kernel reads once and writes once.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <type_traits>

#include "kernels/host_device.h"
#include "kernels/launch_grids.h"
#include "kernels/scan/kernels.h"
#include "kernels/take_remainder.h"

namespace warpline {
namespace {

constexpr int kScanThreads = 256;
constexpr int kScanWarps = kScanThreads / 32;
constexpr int kVectorBytes = 16;
constexpr unsigned kAllLanes = 0xffffffff;

// Vectors per thread and tile. Three CTAs of eight keep 96 KiB per SM in flight during look-back.
constexpr int kShortRowVectors = 4;
constexpr int kRowVectors = 4;
constexpr int kTileVectors = 8;
constexpr int kColumnVectors = 8;
constexpr int kStripVectors = 8;

// Tiles per group, and groups per supergroup. One warp reads a group of tiles at once.
constexpr int kTileGroup = 32;
// Threads read a group of strip tiles one after the other, so these groups are smaller.
constexpr int kStripGroup = 16;
// Strips of more tiles have supergroups of groups: the chain of prefixes would be too slow otherwise.
constexpr std::int64_t kMaxStripChain = 64;

// ScanColumns needs so many columns to fill the device. Columns that are shorter than kMinStripCount have no
// work to split.
constexpr std::int64_t kMinColumns = std::int64_t{1} << 18;
constexpr std::int64_t kMinStripCount = 17;

template <typename T>
struct SumOp {
  static constexpr T kIdentity = 0;
  static __device__ __forceinline__ T Apply(T a, T b) { return a + b; }
};
template <typename T>
struct ProdOp {
  static constexpr T kIdentity = 1;
  static __device__ __forceinline__ T Apply(T a, T b) { return a * b; }
};
// NaN is the result if either operand is NaN.
template <typename T>
struct MinOp {
  static constexpr T kIdentity = std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity()
                                                                      : std::numeric_limits<T>::max();
  static __device__ __forceinline__ T Apply(T a, T b) { return a < b || a != a ? a : b; }
};
template <typename T>
struct MaxOp {
  static constexpr T kIdentity = std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                                      : std::numeric_limits<T>::lowest();
  static __device__ __forceinline__ T Apply(T a, T b) { return a > b || a != a ? a : b; }
};

template <typename T>
constexpr int kVectorSize = kVectorBytes / static_cast<int>(sizeof(T));

template <typename T>
struct alignas(kVectorBytes) ScanVector {
  T e[kVectorSize<T>];
};

// Stores 16 bytes at once. The compiler splits such stores where the elements come from several branches.
template <typename T>
__device__ __forceinline__ void StoreAtOnce(T* to, const T (&elements)[kVectorSize<T>]) {
  const std::size_t address = __cvta_generic_to_global(to);
  if constexpr (sizeof(T) == 4) {
    std::uint32_t bits[4];
    memcpy(bits, elements, sizeof(bits));
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(address), "r"(bits[0]), "r"(bits[1]),
                 "r"(bits[2]), "r"(bits[3])
                 : "memory");
  } else {
    std::uint64_t bits[2];
    memcpy(bits, elements, sizeof(bits));
    asm volatile("st.global.v2.b64 [%0], {%1, %2};" ::"l"(address), "l"(bits[0]), "l"(bits[1]) : "memory");
  }
}

template <typename T, typename Op>
__device__ __forceinline__ ScanVector<T> IdentityVector() {
  ScanVector<T> vector;
#pragma unroll
  for (int i = 0; i < kVectorSize<T>; ++i) vector.e[i] = Op::kIdentity;
  return vector;
}

template <typename T, typename Op>
__device__ __forceinline__ ScanVector<T> Combine(const ScanVector<T>& a, const ScanVector<T>& b) {
  ScanVector<T> vector;
#pragma unroll
  for (int i = 0; i < kVectorSize<T>; ++i) vector.e[i] = Op::Apply(a.e[i], b.e[i]);
  return vector;
}

// The elements of one row, as places in the array.
struct RowSpan {
  std::int64_t begin = 0, end = 0;
};

// Kernels use vector accesses if the bases are aligned. The order of additions is the same without them.
struct ScanAccess {
  bool exclusive = false, reverse = false;
  bool vector_loads = false, vector_stores = false;
};

template <typename T>
__device__ __forceinline__ bool IsWhole(std::int64_t place, const RowSpan& row) {
  return place >= row.begin && place + kVectorSize<T> <= row.end;
}

// Loads the vector at `place`. Elements outside of the row are the identity.
template <typename T, typename Op>
__device__ __forceinline__ ScanVector<T> LoadVector(const T* x, std::int64_t place, const RowSpan& row,
                                                    bool vector_loads) {
  if (vector_loads && IsWhole<T>(place, row)) return *reinterpret_cast<const ScanVector<T>*>(x + place);
  ScanVector<T> vector = IdentityVector<T, Op>();
#pragma unroll
  for (int i = 0; i < kVectorSize<T>; ++i) {
    if (place + i >= row.begin && place + i < row.end) vector.e[i] = x[place + i];
  }
  return vector;
}

template <typename T>
__device__ __forceinline__ void StoreVector(T* y, std::int64_t place, const RowSpan& row, bool vector_stores,
                                            const ScanVector<T>& vector) {
  if (vector_stores && IsWhole<T>(place, row)) {
    StoreAtOnce(y + place, vector.e);
    return;
  }
#pragma unroll
  for (int i = 0; i < kVectorSize<T>; ++i) {
    if (place + i >= row.begin && place + i < row.end) y[place + i] = vector.e[i];
  }
}

template <typename T>
__device__ __forceinline__ ScanVector<T> Mirrored(const ScanVector<T>& vector) {
  ScanVector<T> mirrored;
#pragma unroll
  for (int i = 0; i < kVectorSize<T>; ++i) mirrored.e[i] = vector.e[kVectorSize<T> - 1 - i];
  return mirrored;
}

// The vectors of one thread: `step` elements apart, from `place` on.
template <typename T, typename Op, int kVectors>
__device__ __forceinline__ void LoadVectors(ScanVector<T> (&vectors)[kVectors], const T* x,
                                            std::int64_t place, std::int64_t step, const RowSpan& row,
                                            bool vector_loads) {
  // The vectors between two whole ones are whole.
  if (vector_loads && IsWhole<T>(place, row) && IsWhole<T>(place + (kVectors - 1) * step, row)) {
#pragma unroll
    for (int r = 0; r < kVectors; ++r) {
      vectors[r] = *reinterpret_cast<const ScanVector<T>*>(x + place + r * step);
    }
    return;
  }
#pragma unroll
  for (int r = 0; r < kVectors; ++r) vectors[r] = LoadVector<T, Op>(x, place + r * step, row, vector_loads);
}

// Brings the elements into the order of the scan. All loads must have been issued before.
template <typename T, int kVectors>
__device__ __forceinline__ void OrderVectors(ScanVector<T> (&vectors)[kVectors], bool reverse) {
  if (!reverse) return;
#pragma unroll
  for (int r = 0; r < kVectors; ++r) vectors[r] = Mirrored(vectors[r]);
}

// Returns the results for a vector that holds its own running results, with `prefix` for all elements before.
template <typename T, typename Op>
__device__ __forceinline__ ScanVector<T> Finished(const ScanVector<T>& vector, T prefix, bool exclusive) {
  ScanVector<T> result;
#pragma unroll
  for (int i = 0; i < kVectorSize<T>; ++i) result.e[i] = Op::Apply(prefix, vector.e[i]);
  if (exclusive) {
#pragma unroll
    for (int i = kVectorSize<T> - 1; i > 0; --i) result.e[i] = result.e[i - 1];
    result.e[0] = prefix;
  }
  return result;
}

template <typename T, typename Op, int kVectors>
__device__ __forceinline__ void StoreVectors(const ScanVector<T> (&vectors)[kVectors],
                                             const T (&before)[kVectors], T prefix, T* y, std::int64_t place,
                                             std::int64_t step, const RowSpan& row,
                                             const ScanAccess& access) {
  const bool are_whole =
      access.vector_stores && IsWhole<T>(place, row) && IsWhole<T>(place + (kVectors - 1) * step, row);
#pragma unroll
  for (int r = 0; r < kVectors; ++r) {
    ScanVector<T> result = Finished<T, Op>(vectors[r], Op::Apply(prefix, before[r]), access.exclusive);
    if (access.reverse) result = Mirrored(result);
    if (are_whole) {
      StoreAtOnce(y + place + r * step, result.e);
    } else {
      StoreVector(y, place + r * step, row, access.vector_stores, result);
    }
  }
}

// Makes the elements of a vector running results.
template <typename T, typename Op>
__device__ __forceinline__ void ScanElements(ScanVector<T>& vector) {
#pragma unroll
  for (int i = 1; i < kVectorSize<T>; ++i) vector.e[i] = Op::Apply(vector.e[i - 1], vector.e[i]);
}

// Combines the values of the lanes up to each lane, within runs of `width` lanes.
template <typename T, typename Op>
__device__ __forceinline__ T ScanLanes(T value, int lane_in_run, int width) {
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    if (distance >= width) break;
    const T before = __shfl_up_sync(kAllLanes, value, distance);
    if (lane_in_run >= distance) value = Op::Apply(before, value);
  }
  return value;
}

template <typename T, typename Op>
__device__ __forceinline__ T ValueBefore(T inclusive, int lane_in_run) {
  const T before = __shfl_up_sync(kAllLanes, inclusive, 1);
  return lane_in_run == 0 ? Op::kIdentity : before;
}

// Combines the values of all lanes in their order, and returns the result to each.
template <typename T, typename Op>
__device__ __forceinline__ T ReduceLanes(T value) {
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    value = Op::Apply(value, __shfl_down_sync(kAllLanes, value, distance));
  }
  return __shfl_sync(kAllLanes, value, 0);
}

// Scans the vectors of a warp: lane after lane, then vector after vector of a lane. Makes each vector running
// results, with before[r] for what comes before vector r in the warp. Returns the total.
template <typename T, typename Op, int kVectors>
__device__ __forceinline__ T ScanWarp(ScanVector<T> (&vectors)[kVectors], T (&before)[kVectors], int lane) {
  T total = Op::kIdentity;
#pragma unroll
  for (int r = 0; r < kVectors; ++r) {
    ScanElements<T, Op>(vectors[r]);
    const T inclusive = ScanLanes<T, Op>(vectors[r].e[kVectorSize<T> - 1], lane, 32);
    before[r] = Op::Apply(total, ValueBefore<T, Op>(inclusive, lane));
    total = Op::Apply(total, __shfl_sync(kAllLanes, inclusive, 31));
  }
  return total;
}

// Rows and the vectors that hold them. A row may begin and end inside of a vector. Vector numbers count in
// the order of the scan.
struct RowLayout {
  std::int64_t rows = 1, count = 1;
  std::int64_t max_vectors = 1;  // vectors that a row touches at most
};

template <typename T>
__device__ __forceinline__ RowSpan SpanOfRow(const RowLayout& layout, std::int64_t row) {
  if (row >= layout.rows) return {};
  return {row * layout.count, (row + 1) * layout.count};
}

// Returns the place of a vector of the row.
template <typename T>
__device__ __forceinline__ std::int64_t PlaceOfVector(const RowSpan& row, std::int64_t vector, bool reverse) {
  constexpr std::int64_t kSize = kVectorSize<T>;
  return reverse ? ((row.end + kSize - 1) / kSize - 1 - vector) * kSize
                 : (row.begin / kSize + vector) * kSize;
}

// Each run of `lanes` lanes scans a row of at most as many vectors. A thread has a vector of several rows.
template <typename T, typename Op>
__global__ void __launch_bounds__(kScanThreads)
    ScanShortRows(const T* __restrict__ x, T* __restrict__ y, RowLayout layout, ScanAccess access, int lanes,
                  std::int64_t first_block) {
  const int lane_in_row = static_cast<int>(threadIdx.x) & (lanes - 1);
  const std::int64_t rows_apart = kScanThreads / lanes;
  const std::int64_t first_row =
      (first_block + blockIdx.x) * rows_apart * kShortRowVectors + static_cast<int>(threadIdx.x) / lanes;
  ScanVector<T> vectors[kShortRowVectors];
  RowSpan rows[kShortRowVectors];
  std::int64_t places[kShortRowVectors];
#pragma unroll
  for (int r = 0; r < kShortRowVectors; ++r) {
    rows[r] = SpanOfRow<T>(layout, first_row + r * rows_apart);
    places[r] = PlaceOfVector<T>(rows[r], lane_in_row, access.reverse);
    vectors[r] = LoadVector<T, Op>(x, places[r], rows[r], access.vector_loads);
  }
  OrderVectors(vectors, access.reverse);
#pragma unroll
  for (int r = 0; r < kShortRowVectors; ++r) {
    ScanElements<T, Op>(vectors[r]);
    const T inclusive = ScanLanes<T, Op>(vectors[r].e[kVectorSize<T> - 1], lane_in_row, lanes);
    const T prefix = ValueBefore<T, Op>(inclusive, lane_in_row);
    ScanVector<T> result = Finished<T, Op>(vectors[r], prefix, access.exclusive);
    if (access.reverse) result = Mirrored(result);
    StoreVector(y, places[r], rows[r], access.vector_stores, result);
  }
}

// Returns the combined totals of warps [first, last), from shared memory.
template <typename T, typename Op>
__device__ __forceinline__ T CombineWarps(const T* totals, int first, int last) {
  T combined = Op::kIdentity;
  for (int w = first; w < last; ++w) combined = Op::Apply(combined, totals[w]);
  return combined;
}

// `warps` warps scan each row, a tile at a time. The next tile is loaded before this one is scanned. Rows of
// one tile need no registers for a next one, so that more CTAs fit on an SM.
template <typename T, typename Op, bool kOneTile>
__global__ void __launch_bounds__(kScanThreads, kOneTile ? 4 : 3)
    ScanRows(const T* __restrict__ x, T* __restrict__ y, RowLayout layout, ScanAccess access, int warps,
             std::int64_t first_block) {
  // Two buffers: warps write the totals of the next tile while others still read those of this one.
  __shared__ T totals[2][kScanWarps];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int warp_in_row = warp & (warps - 1), first_warp = warp - warp_in_row;
  const RowSpan row = SpanOfRow<T>(layout, (first_block + blockIdx.x) * (kScanWarps / warps) + warp / warps);
  const std::int64_t sign = access.reverse ? -kVectorSize<T> : kVectorSize<T>;
  const std::int64_t step = 32 * sign, tile_step = warps * kRowVectors * step;
  std::int64_t place = PlaceOfVector<T>(row, warp_in_row * kRowVectors * 32 + lane, access.reverse);
  ScanVector<T> next[kRowVectors];
  LoadVectors<T, Op>(next, x, place, step, row, access.vector_loads);
  T carry = Op::kIdentity;
  const std::int64_t tile_vectors = warps * kRowVectors * 32;
  int buffer = 0;
  for (std::int64_t first = 0; first < layout.max_vectors; first += tile_vectors) {
    ScanVector<T> vectors[kRowVectors];
#pragma unroll
    for (int r = 0; r < kRowVectors; ++r) vectors[r] = next[r];
    if (!kOneTile && first + tile_vectors < layout.max_vectors) {
      LoadVectors<T, Op>(next, x, place + tile_step, step, row, access.vector_loads);
    }
    OrderVectors(vectors, access.reverse);
    T before[kRowVectors];
    T total = ScanWarp<T, Op>(vectors, before, lane);
    T prefix = carry;
    if (warps > 1) {
      if (lane == 0) totals[buffer][warp] = total;
      __syncthreads();
      prefix = Op::Apply(carry, CombineWarps<T, Op>(totals[buffer], first_warp, warp));
      total = CombineWarps<T, Op>(totals[buffer], first_warp, first_warp + warps);
      buffer ^= 1;
    }
    carry = Op::Apply(carry, total);
    StoreVectors<T, Op>(vectors, before, prefix, y, place, step, row, access);
    if (kOneTile) break;
    place += tile_step;
  }
}

// A value that other CTAs wait for: words of 64 bits with a half of the value, or all of it, and a flag. The
// flag and its 32 bits are written at once, so that no fence is needed. All words are 0 before a launch.
template <typename T>
struct Published {
  static constexpr int kWords = static_cast<int>(sizeof(T) / 4);
  std::uint64_t words[kWords];

  // True if all words have been read after they were written.
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
  int values = 1;  // per entry

  WARPLINE_HOST_DEVICE bool IsNeeded() const { return tiles > 1; }
  std::int64_t Entries() const { return lanes * (tiles + groups + chain); }
};
constexpr std::size_t kTicketBytes = 16;

template <typename T>
struct LookBack {
  unsigned long long* ticket = nullptr;  // null: tiles take the numbers of their CTAs
  Published<T>*tiles = nullptr, *groups = nullptr, *chain = nullptr;
};

// Returns the number of this CTA's tile. CTAs with smaller numbers have begun, so they can be waited for.
template <typename T>
__device__ __forceinline__ std::int64_t TakeTicket(const LookBack<T>& look_back, std::int64_t first_block) {
  if (look_back.ticket == nullptr) return first_block + blockIdx.x;
  return static_cast<std::int64_t>(atomicAdd(look_back.ticket, 1ull));
}

// One warp publishes the total of a tile and returns the combination of all tiles of the row before it.
// The pointers are those of the row.
template <typename T, typename Op>
__device__ T PrefixOfTile(const LookBack<T>& row, std::int64_t tile, T total, int lane) {
  if (lane == 0) Published<T>::Write(row.tiles + tile, total);
  const std::int64_t group = tile / kTileGroup, link = group / kTileGroup;
  const int in_group = static_cast<int>(tile % kTileGroup), in_link = static_cast<int>(group % kTileGroup);
  Published<T> tile_total = Published<T>::Ready(Op::kIdentity);
  Published<T> group_total = tile_total, link_prefix = tile_total;
  bool awaits_tile = lane < in_group, awaits_group = lane<in_link, awaits_link = link> 0;
  // All three loads are issued before the first one is looked at.
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

// A CTA scans one tile of a row. Tiles are numbered row by row.
template <typename T, typename Op>
__global__ void __launch_bounds__(kScanThreads, 3)
    ScanTiles(const T* __restrict__ x, T* __restrict__ y, RowLayout layout, ScanAccess access,
              LookBackLayout tiling, LookBack<T> look_back, std::int64_t first_block) {
  __shared__ T totals[kScanWarps];
  __shared__ T shared_prefix;
  __shared__ std::int64_t shared_row, shared_tile;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  if (threadIdx.x == 0) {
    std::int64_t number = TakeTicket(look_back, first_block);
    shared_tile = TakeRemainder(number, tiling.tiles);
    shared_row = number;
  }
  __syncthreads();
  const std::int64_t tile = shared_tile;
  const RowSpan row = SpanOfRow<T>(layout, shared_row);
  const std::int64_t step = 32 * (access.reverse ? -kVectorSize<T> : kVectorSize<T>);
  const std::int64_t place = PlaceOfVector<T>(
      row, tile * (kScanThreads * kTileVectors) + warp * (32 * kTileVectors) + lane, access.reverse);
  ScanVector<T> vectors[kTileVectors];
  LoadVectors<T, Op>(vectors, x, place, step, row, access.vector_loads);
  OrderVectors(vectors, access.reverse);
  T before[kTileVectors];
  const T total = ScanWarp<T, Op>(vectors, before, lane);
  if (lane == 0) totals[warp] = total;
  __syncthreads();
  T prefix = CombineWarps<T, Op>(totals, 0, warp);
  if (tiling.IsNeeded()) {
    if (warp == 0) {
      const LookBack<T> of_row{nullptr, look_back.tiles + shared_row * tiling.tiles,
                               look_back.groups + shared_row * tiling.groups,
                               look_back.chain + shared_row * tiling.chain};
      const T tile_total = CombineWarps<T, Op>(totals, 0, kScanWarps);
      const T tile_prefix = PrefixOfTile<T, Op>(of_row, tile, tile_total, lane);
      if (lane == 0) shared_prefix = tile_prefix;
    }
    __syncthreads();
    prefix = Op::Apply(shared_prefix, prefix);
  }
  StoreVectors<T, Op>(vectors, before, prefix, y, place, step, row, access);
}

// Each thread scans the kSize neighbouring columns whose number it has, top to bottom.
template <typename T, typename Op, int kSize>
__global__ void __launch_bounds__(kScanThreads)
    ScanColumns(const T* __restrict__ x, T* __restrict__ y, std::int64_t outer, std::int64_t count,
                std::int64_t inner, ScanAccess access, std::int64_t first_block) {
  struct alignas(kSize * sizeof(T)) Pack {
    T e[kSize];
  };
  std::int64_t column = (first_block + blockIdx.x) * kScanThreads + static_cast<std::int64_t>(threadIdx.x);
  if (column >= outer * (inner / kSize)) return;
  const std::int64_t in_row = TakeRemainder(column, inner / kSize) * kSize;
  const std::int64_t last = access.reverse ? count - 1 : 0;
  const std::int64_t step = access.reverse ? -inner : inner;
  std::int64_t place = (column * count + last) * inner + in_row;
  Pack running;
#pragma unroll
  for (int e = 0; e < kSize; ++e) running.e[e] = Op::kIdentity;
  const auto scan = [&](int rows) {
    Pack packs[kColumnVectors] = {};
#pragma unroll
    for (int r = 0; r < kColumnVectors; ++r) {
      if (r < rows) packs[r] = *reinterpret_cast<const Pack*>(x + place + r * step);
    }
#pragma unroll
    for (int r = 0; r < kColumnVectors; ++r) {
      if (r >= rows) break;
      Pack result;
#pragma unroll
      for (int e = 0; e < kSize; ++e) {
        const T next = Op::Apply(running.e[e], packs[r].e[e]);
        result.e[e] = access.exclusive ? running.e[e] : next;
        running.e[e] = next;
      }
      if constexpr (kSize == kVectorSize<T>) {
        StoreAtOnce(y + place + r * step, result.e);
      } else {
        *reinterpret_cast<Pack*>(y + place + r * step) = result;
      }
    }
    place += kColumnVectors * step;
  };
  std::int64_t left = count;
  for (; left >= kColumnVectors; left -= kColumnVectors) scan(kColumnVectors);
  if (left > 0) scan(static_cast<int>(left));
}

// Columns in strips, and strips in tiles. A strip has `lanes` vectors of columns side by side. A thread has
// kStripVectors rows of one vector. Lane l of a warp has vector l % lanes; the others of the warp that have
// this vector have the rows above and below.
struct StripLayout {
  std::int64_t count = 1, inner = 1;
  std::int64_t strips = 1;  // per outer index
  int lanes = 32;
  std::int64_t rows = kStripVectors;  // per tile

  // True if groups of tiles are combined into supergroups.
  bool has_supergroups = false;
  // True if vectors are neighbouring columns. Otherwise the columns of a vector are `lanes` apart, so that
  // neighbouring lanes access neighbouring elements.
  bool has_vectors = false;
};

// Reads the values of entries [0, count), `stride` entries apart, and combines them when all are there.
// Reads `further` with them if it is awaited, without waiting for it.
template <typename T, typename Op, int kMax>
__device__ __forceinline__ T Collect(const Published<T>* entries, std::int64_t stride, int count,
                                     const Published<T>* further, Published<T>& further_value) {
  Published<T> values[kMax];
  bool ready;
  do {
#pragma unroll
    for (int i = 0; i < kMax; ++i) {
      values[i] = Published<T>::Ready(Op::kIdentity);
      if (i < count) values[i].ReadFrom(entries + i * stride);
    }
    if (!further_value.IsReady()) further_value.ReadFrom(further);
    ready = true;
#pragma unroll
    for (int i = 0; i < kMax; ++i) ready = ready && values[i].IsReady();
  } while (!ready);
  T combined = Op::kIdentity;
#pragma unroll
  for (int i = 0; i < kMax; ++i) combined = Op::Apply(combined, values[i].Value());
  return combined;
}

template <typename T, typename Op>
__global__ void __launch_bounds__(kScanThreads, 3)
    ScanStrips(const T* __restrict__ x, T* __restrict__ y, StripLayout layout, ScanAccess access,
               LookBackLayout tiling, LookBack<T> look_back, std::int64_t first_block) {
  constexpr int kSize = kVectorSize<T>;
  constexpr int kMaxColumns = 32 * kSize;
  // Threads that share the reading of a group for each column.
  constexpr int kParts = kScanThreads / kMaxColumns;
  constexpr int kPerPart = kStripGroup / kParts;
  __shared__ ScanVector<T> totals[kScanWarps][32];
  __shared__ ScanVector<T> shared_tiles[kParts][32], shared_groups[kParts][32], shared_link[32];
  __shared__ std::int64_t shared_number;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const int lane_in_row = lane & (layout.lanes - 1);

  // Tiles are numbered strip by strip, then downwards, so that neighbours in memory are read together.
  if (thread == 0) shared_number = TakeTicket(look_back, first_block);
  __syncthreads();
  std::int64_t tile = shared_number;
  const std::int64_t strip = TakeRemainder(tile, tiling.lanes);
  std::int64_t outer = strip;
  const std::int64_t strip_in_row = TakeRemainder(outer, layout.strips);

  const int columns = layout.lanes * kSize;
  const std::int64_t column =
      strip_in_row * columns + (layout.has_vectors ? lane_in_row * kSize : lane_in_row);
  const std::int64_t row = tile * layout.rows + thread / layout.lanes * kStripVectors;
  const std::int64_t step = access.reverse ? -layout.inner : layout.inner;
  const std::int64_t place =
      (outer * layout.count + (access.reverse ? layout.count - 1 - row : row)) * layout.inner + column;
  const std::int64_t rows_left = layout.count - row;

  ScanVector<T> vectors[kStripVectors];
#pragma unroll
  for (int r = 0; r < kStripVectors; ++r) vectors[r] = IdentityVector<T, Op>();
  if (layout.has_vectors) {
#pragma unroll
    for (int r = 0; r < kStripVectors; ++r) {
      if (r < rows_left && column < layout.inner) {
        vectors[r] = *reinterpret_cast<const ScanVector<T>*>(x + place + r * step);
      }
    }
  } else {
#pragma unroll
    for (int r = 0; r < kStripVectors; ++r) {
#pragma unroll
      for (int e = 0; e < kSize; ++e) {
        if (r < rows_left && column + e * layout.lanes < layout.inner) {
          vectors[r].e[e] = x[place + r * step + e * layout.lanes];
        }
      }
    }
  }
#pragma unroll
  for (int r = 1; r < kStripVectors; ++r) vectors[r] = Combine<T, Op>(vectors[r - 1], vectors[r]);

  // This is what comes before the rows of this thread in the tile: in its warp, then in the warps before.
  ScanVector<T> inclusive = vectors[kStripVectors - 1], before;
#pragma unroll
  for (int e = 0; e < kSize; ++e) {
    for (int distance = layout.lanes; distance < 32; distance *= 2) {
      const T above = __shfl_up_sync(kAllLanes, inclusive.e[e], distance);
      if (lane >= distance) inclusive.e[e] = Op::Apply(above, inclusive.e[e]);
    }
    const T above = __shfl_up_sync(kAllLanes, inclusive.e[e], layout.lanes & 31);
    before.e[e] = lane < layout.lanes ? Op::kIdentity : above;
  }
  if (lane >= 32 - layout.lanes) totals[warp][lane_in_row] = inclusive;
  __syncthreads();
  ScanVector<T> warps_before = IdentityVector<T, Op>();
  for (int w = 0; w < warp; ++w) warps_before = Combine<T, Op>(warps_before, totals[w][lane_in_row]);
  before = Combine<T, Op>(warps_before, before);

  if (tiling.IsNeeded()) {
    Published<T>* const tiles = look_back.tiles + strip * tiling.tiles * columns;
    Published<T>* const groups = look_back.groups + strip * tiling.groups * columns;
    Published<T>* const chain = look_back.chain + strip * tiling.chain * columns;
    const std::int64_t group = tile / kStripGroup;
    const std::int64_t link = layout.has_supergroups ? group / kStripGroup : group;
    const int in_group = static_cast<int>(tile % kStripGroup);
    const int in_link = layout.has_supergroups ? static_cast<int>(group % kStripGroup) : 0;

    ScanVector<T> tile_total = IdentityVector<T, Op>();
    if (thread < layout.lanes) {
      for (int w = 0; w < kScanWarps; ++w) tile_total = Combine<T, Op>(tile_total, totals[w][thread]);
#pragma unroll
      for (int e = 0; e < kSize; ++e) {
        Published<T>::Write(tiles + tile * columns + thread * kSize + e, tile_total.e[e]);
      }
    }

    // Each thread reads some of the entries for one column.
    const int column_read = thread & (columns - 1), part = thread / columns;
    const bool reads = part < kParts;
    const auto mine = [&](ScanVector<T>(*shared)[32]) -> T& {
      return reinterpret_cast<T*>(shared[part])[column_read];
    };
    const auto part_of = [&](int entries) { return min(max(entries - part * kPerPart, 0), kPerPart); };
    Published<T> link_prefix = Published<T>::Ready(Op::kIdentity);
    const Published<T>* const link_entry = chain + (link - 1) * columns + column_read;
    if (reads) {
      if (part == 0 && link > 0) link_prefix.words[0] = 0;  // is awaited
      mine(shared_tiles) =
          Collect<T, Op, kPerPart>(tiles + (group * kStripGroup + part * kPerPart) * columns + column_read,
                                   columns, part_of(in_group), link_entry, link_prefix);
    }
    const auto combined = [&](const ScanVector<T>(*shared)[32], int at) {
      ScanVector<T> all = shared[0][at];
#pragma unroll
      for (int p = 1; p < kParts; ++p) all = Combine<T, Op>(all, shared[p][at]);
      return all;
    };
    if (layout.has_supergroups) {
      if (in_group == kStripGroup - 1) {
        __syncthreads();
        if (thread < layout.lanes) {
          const ScanVector<T> group_total = Combine<T, Op>(combined(shared_tiles, thread), tile_total);
#pragma unroll
          for (int e = 0; e < kSize; ++e) {
            Published<T>::Write(groups + group * columns + thread * kSize + e, group_total.e[e]);
          }
        }
      }
      if (reads) {
        mine(shared_groups) =
            Collect<T, Op, kPerPart>(groups + (link * kStripGroup + part * kPerPart) * columns + column_read,
                                     columns, part_of(in_link), link_entry, link_prefix);
      }
    }
    if (part == 0) {
      while (!link_prefix.IsReady()) link_prefix.ReadFrom(link_entry);
      reinterpret_cast<T*>(shared_link)[column_read] = link_prefix.Value();
    }
    __syncthreads();
    ScanVector<T> prefix = combined(shared_tiles, lane_in_row);
    if (layout.has_supergroups) prefix = Combine<T, Op>(combined(shared_groups, lane_in_row), prefix);
    prefix = Combine<T, Op>(shared_link[lane_in_row], prefix);
    const bool ends_link =
        in_group == kStripGroup - 1 && (!layout.has_supergroups || in_link == kStripGroup - 1);
    if (ends_link && thread < layout.lanes) {
      const ScanVector<T> through = Combine<T, Op>(prefix, tile_total);
#pragma unroll
      for (int e = 0; e < kSize; ++e) {
        Published<T>::Write(chain + link * columns + thread * kSize + e, through.e[e]);
      }
    }
    before = Combine<T, Op>(prefix, before);
  }

#pragma unroll
  for (int r = 0; r < kStripVectors; ++r) {
    if (r >= rows_left) break;
    ScanVector<T> result;
#pragma unroll
    for (int e = 0; e < kSize; ++e) {
      const T own = Op::Apply(before.e[e], vectors[r].e[e]);
      const T above = r == 0 ? before.e[e] : Op::Apply(before.e[e], vectors[r == 0 ? 0 : r - 1].e[e]);
      result.e[e] = access.exclusive ? above : own;
    }
    if (layout.has_vectors) {
      if (column < layout.inner) StoreAtOnce(y + place + r * step, result.e);
      continue;
    }
#pragma unroll
    for (int e = 0; e < kSize; ++e) {
      if (column + e * layout.lanes < layout.inner) y[place + r * step + e * layout.lanes] = result.e[e];
    }
  }
}

enum class ScanKernel { kShortRows, kRows, kTiles, kColumns, kStrips };

// Everything about a launch that follows from the shape.
struct ScanPlan {
  ScanKernel kernel = ScanKernel::kRows;
  RowLayout rows;
  int lanes = 1, warps = 1;  // per row
  StripLayout strips;
  LookBackLayout tiling;
  std::size_t value_bytes = 4;

  std::size_t WorkspaceBytes() const {
    if (!tiling.IsNeeded()) return 0;
    // See Published: 8 bytes for every 4 bytes of a value.
    return kTicketBytes + static_cast<std::size_t>(tiling.Entries() * tiling.values) * value_bytes * 2;
  }
};

// Few rows leave SMs idle if a CTA has a row each; tiles of long rows do not.
bool HasFewLongRows(const ScanProblem& problem, std::int64_t row_bytes) {
  constexpr std::int64_t kKiB = 1024;
  return (problem.outer < 512 && row_bytes > 16 * kKiB) || (problem.outer < 2048 && row_bytes >= 64 * kKiB);
}

void PlanRows(const ScanProblem& problem, std::int64_t vector_size, ScanPlan& plan) {
  plan.rows = {.rows = problem.outer, .count = problem.count};
  const std::int64_t max_shift = problem.outer == 1 ? 0 : vector_size - std::gcd(problem.count, vector_size);
  plan.rows.max_vectors = CeilDiv(max_shift + problem.count, vector_size);
  if (plan.rows.max_vectors <= 32) {
    plan.kernel = ScanKernel::kShortRows;
    plan.lanes = static_cast<int>(std::bit_ceil(static_cast<unsigned>(plan.rows.max_vectors)));
    return;
  }
  if (!HasFewLongRows(problem, problem.count * static_cast<std::int64_t>(plan.value_bytes))) {
    plan.kernel = ScanKernel::kRows;
    while (plan.warps < kScanWarps && plan.warps * kRowVectors * 32 < plan.rows.max_vectors) plan.warps *= 2;
    return;
  }
  plan.kernel = ScanKernel::kTiles;
  plan.tiling.lanes = problem.outer;
  plan.tiling.tiles = CeilDiv(plan.rows.max_vectors, kScanThreads * kTileVectors);
  plan.tiling.groups = CeilDiv(plan.tiling.tiles, kTileGroup);
  plan.tiling.chain = CeilDiv(plan.tiling.groups, kTileGroup);
}

void PlanStrips(const ScanProblem& problem, std::int64_t vector_size, ScanPlan& plan) {
  StripLayout& strips = plan.strips;
  plan.kernel = ScanKernel::kStrips;
  strips.count = problem.count;
  strips.inner = problem.inner;
  const std::int64_t vectors = CeilDiv(problem.inner, vector_size);
  strips.lanes =
      static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(std::min<std::int64_t>(vectors, 32))));
  strips.strips = CeilDiv(vectors, strips.lanes);
  strips.rows = kScanThreads / strips.lanes * kStripVectors;
  plan.tiling.lanes = problem.outer * strips.strips;
  plan.tiling.tiles = CeilDiv(problem.count, strips.rows);
  plan.tiling.values = static_cast<int>(strips.lanes * vector_size);
  const std::int64_t groups = CeilDiv(plan.tiling.tiles, kStripGroup);
  strips.has_supergroups = groups > kMaxStripChain;
  plan.tiling.groups = strips.has_supergroups ? groups : 0;
  plan.tiling.chain = strips.has_supergroups ? CeilDiv(groups, kStripGroup) : groups;
}

ScanPlan PlanScan(const ScanProblem& problem) {
  ScanPlan plan;
  plan.value_bytes = SizeOf(problem.dtype);
  const std::int64_t vector_size = kVectorBytes / static_cast<std::int64_t>(plan.value_bytes);
  if (problem.outer == 0 || problem.count == 0 || problem.inner == 0) return plan;
  if (problem.inner == 1) {
    PlanRows(problem, vector_size, plan);
  } else if (problem.outer * problem.inner >= kMinColumns || problem.count < kMinStripCount) {
    plan.kernel = ScanKernel::kColumns;
  } else {
    PlanStrips(problem, vector_size, plan);
  }
  return plan;
}

template <typename T>
LookBack<T> LookBackIn(void* workspace, const LookBackLayout& tiling) {
  if (!tiling.IsNeeded()) return {};
  LookBack<T> look_back;
  look_back.ticket = static_cast<unsigned long long*>(workspace);
  look_back.tiles = reinterpret_cast<Published<T>*>(static_cast<char*>(workspace) + kTicketBytes);
  look_back.groups = look_back.tiles + tiling.lanes * tiling.tiles * tiling.values;
  look_back.chain = look_back.groups + tiling.lanes * tiling.groups * tiling.values;
  return look_back;
}

template <typename T, typename Op>
cudaError_t LaunchTyped(const ScanProblem& problem, const Operands& operands, cudaStream_t stream) {
  ScanPlan plan = PlanScan(problem);
  const T* const x = static_cast<const T*>(operands.in[0]);
  T* const y = static_cast<T*>(operands.out);
  const auto is_aligned = [](const void* address) {
    return reinterpret_cast<std::uintptr_t>(address) % kVectorBytes == 0;
  };
  const ScanAccess access{.exclusive = problem.exclusive,
                          .reverse = problem.reverse,
                          .vector_loads = is_aligned(x),
                          .vector_stores = is_aligned(y)};
  const bool has_vectors = is_aligned(x) && is_aligned(y) && problem.inner % kVectorSize<T> == 0;
  if (plan.tiling.IsNeeded()) {
    const cudaError_t error = cudaMemsetAsync(operands.workspace, 0, plan.WorkspaceBytes(), stream);
    if (error != cudaSuccess) return error;
  }
  const LookBack<T> look_back = LookBackIn<T>(operands.workspace, plan.tiling);
  const std::int64_t tiles = plan.tiling.lanes * plan.tiling.tiles;
  switch (plan.kernel) {
    case ScanKernel::kShortRows:
      return LaunchGrids(CeilDiv(problem.outer, kScanThreads / plan.lanes * kShortRowVectors),
                         [&](std::int64_t first, unsigned grid) {
                           ScanShortRows<T, Op><<<grid, kScanThreads, 0, stream>>>(x, y, plan.rows, access,
                                                                                   plan.lanes, first);
                         });
    case ScanKernel::kRows: {
      const auto launch = [&](auto* kernel) {
        return LaunchGrids(
            CeilDiv(problem.outer, kScanWarps / plan.warps), [&](std::int64_t first, unsigned grid) {
              kernel<<<grid, kScanThreads, 0, stream>>>(x, y, plan.rows, access, plan.warps, first);
            });
      };
      return plan.rows.max_vectors <= plan.warps * kRowVectors * 32 ? launch(&ScanRows<T, Op, true>)
                                                                    : launch(&ScanRows<T, Op, false>);
    }
    case ScanKernel::kTiles:
      return LaunchGrids(tiles, [&](std::int64_t first, unsigned grid) {
        ScanTiles<T, Op>
            <<<grid, kScanThreads, 0, stream>>>(x, y, plan.rows, access, plan.tiling, look_back, first);
      });
    case ScanKernel::kColumns: {
      const auto launch = [&](auto* kernel, std::int64_t size) {
        const std::int64_t packs = problem.outer * (problem.inner / size);
        return LaunchGrids(CeilDiv(packs, kScanThreads), [&](std::int64_t first, unsigned grid) {
          kernel<<<grid, kScanThreads, 0, stream>>>(x, y, problem.outer, problem.count, problem.inner, access,
                                                    first);
        });
      };
      return has_vectors ? launch(&ScanColumns<T, Op, kVectorSize<T>>, kVectorSize<T>)
                         : launch(&ScanColumns<T, Op, 1>, 1);
    }
    case ScanKernel::kStrips:
      plan.strips.has_vectors = has_vectors;
      return LaunchGrids(tiles, [&](std::int64_t first, unsigned grid) {
        ScanStrips<T, Op>
            <<<grid, kScanThreads, 0, stream>>>(x, y, plan.strips, access, plan.tiling, look_back, first);
      });
  }
  return cudaErrorNotSupported;
}

template <typename T>
cudaError_t LaunchExtreme(const ScanProblem& problem, const Operands& operands, cudaStream_t stream) {
  return problem.op == ScanOp::kMin ? LaunchTyped<T, MinOp<T>>(problem, operands, stream)
                                    : LaunchTyped<T, MaxOp<T>>(problem, operands, stream);
}

template <typename T>
cudaError_t LaunchAny(const ScanProblem& problem, const Operands& operands, cudaStream_t stream) {
  switch (problem.op) {
    case ScanOp::kSum:
      return LaunchTyped<T, SumOp<T>>(problem, operands, stream);
    case ScanOp::kProd:
      return LaunchTyped<T, ProdOp<T>>(problem, operands, stream);
    case ScanOp::kMin:
    case ScanOp::kMax:
      return LaunchExtreme<T>(problem, operands, stream);
  }
  return cudaErrorNotSupported;
}

}  // namespace

std::size_t ScanWorkspaceBytes(const ScanProblem& problem, const DeviceTraits&) {
  return PlanScan(problem).WorkspaceBytes();
}

cudaError_t LaunchScan(const ScanProblem& problem, const Operands& operands, const CudaContext&,
                       cudaStream_t stream) {
  if (problem.outer == 0 || problem.count == 0 || problem.inner == 0) return cudaSuccess;
  switch (problem.dtype) {
    case DType::kF32:
      return LaunchAny<float>(problem, operands, stream);
    case DType::kF64:
      return LaunchAny<double>(problem, operands, stream);
    case DType::kU64:
      return LaunchAny<std::uint64_t>(problem, operands, stream);
    case DType::kI64:
      // Sums and products modulo 2^64 are those of unsigned numbers.
      if (problem.op == ScanOp::kMin || problem.op == ScanOp::kMax) {
        return LaunchExtreme<std::int64_t>(problem, operands, stream);
      }
      return LaunchAny<std::uint64_t>(problem, operands, stream);
    default:
      return cudaErrorNotSupported;
  }
}

}  // namespace warpline
