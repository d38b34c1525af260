// Scans of rows that are each scanned by a few lanes, or by one to eight warps.
#ifndef WARPLINE_KERNELS_SCAN_ROWS_CUH_
#define WARPLINE_KERNELS_SCAN_ROWS_CUH_

#include <cstdint>

#include "kernels/scan/vectors.cuh"

namespace warpline::scan {

// Vectors per thread and tile.
inline constexpr int kShortRowVectors = 4;
inline constexpr int kRowVectors = 4;

// Rows and the vectors that contain them. A row may begin and end inside of a vector. Vectors are numbered in
// the order of the scan.
struct RowLayout {
  std::int64_t rows = 1, count = 1;
  std::int64_t max_vectors = 1;  // maximum number of vectors that a row touches
};

template <typename T>
__device__ __forceinline__ RowSpan SpanOfRow(const RowLayout& layout, std::int64_t row) {
  if (row >= layout.rows) return {};
  return {row * layout.count, (row + 1) * layout.count};
}

// Returns the position of a vector of the row.
template <typename T>
__device__ __forceinline__ std::int64_t PlaceOfVector(const RowSpan& row, std::int64_t vector, bool reverse) {
  constexpr std::int64_t kSize = kVectorSize<T>;
  return reverse ? ((row.end + kSize - 1) / kSize - 1 - vector) * kSize
                 : (row.begin / kSize + vector) * kSize;
}

// Each group of `lanes` lanes scans a row of at most `lanes` vectors. A thread has one vector of each of
// several rows.
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

// `warps` warps scan each row, one tile at a time. The next tile is loaded before the current one is scanned.
// Rows with only one tile need no registers for a next tile, so more CTAs fit on an SM.
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

}  // namespace warpline::scan

#endif  // WARPLINE_KERNELS_SCAN_ROWS_CUH_
