// Scans of a few long columns: a CTA for each tile.
#ifndef WARPLINE_KERNELS_SCAN_STRIPS_CUH_
#define WARPLINE_KERNELS_SCAN_STRIPS_CUH_

#include <cstdint>

#include "kernels/scan/look_back.cuh"
#include "kernels/take_remainder.h"

namespace warpline::scan {

inline constexpr int kStripVectors = 8;  // per thread and tile
// A thread reads the entries of a group of strip tiles one after another, so these groups are smaller than
// those of rows.
inline constexpr int kStripGroup = 16;

// Columns are divided into strips, and strips into tiles. A strip has `lanes` contiguous vectors of columns.
// A thread has kStripVectors rows of one vector. Lane l of a warp has vector l % lanes; the other lanes with
// the same vector have the rows above and below.
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

// Reads the values of entries [0, count), `stride` entries apart, and combines them once all are ready. If
// `further` is awaited, reads it too, but does not wait for it.
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
  // The number of threads that share the reading of a group for each column.
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

  // `before` is the combined value before this thread's rows in the tile: first from its warp, then from the
  // earlier warps.
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
      if (part == 0 && link > 0) link_prefix.words[0] = 0;  // 0 means: not ready yet
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

}  // namespace warpline::scan

#endif  // WARPLINE_KERNELS_SCAN_STRIPS_CUH_
