// Scans of many columns: one thread for each column, or for several neighbouring ones.
#ifndef WARPLINE_KERNELS_SCAN_COLUMNS_CUH_
#define WARPLINE_KERNELS_SCAN_COLUMNS_CUH_

#include <cstdint>

#include "kernels/scan/vectors.cuh"
#include "kernels/take_remainder.h"

namespace warpline::scan {

inline constexpr int kColumnVectors = 8;

// Each thread scans kSize neighbouring columns from top to bottom.
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

}  // namespace warpline::scan

#endif  // WARPLINE_KERNELS_SCAN_COLUMNS_CUH_
