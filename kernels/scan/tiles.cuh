// Scans of a few long rows, with one CTA per tile.
#ifndef WARPLINE_KERNELS_SCAN_TILES_CUH_
#define WARPLINE_KERNELS_SCAN_TILES_CUH_

#include <cstdint>

#include "kernels/scan/look_back.cuh"
#include "kernels/scan/rows.cuh"

namespace warpline::scan {

// Vectors per thread. With eight, three CTAs keep 96 KiB per SM in flight during look-back.
inline constexpr int kTileVectors = 8;

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

}  // namespace warpline::scan

#endif  // WARPLINE_KERNELS_SCAN_TILES_CUH_
