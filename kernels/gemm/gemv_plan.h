// How a product with few rows or columns is read: which operand is the large one, its layout in memory, and
// into how many parts k is split.
#ifndef WARPLINE_KERNELS_GEMM_GEMV_PLAN_H_
#define WARPLINE_KERNELS_GEMM_GEMV_PLAN_H_

#include <cstddef>
#include <cstdint>

#include "kernels/ceil_div.h"
#include "kernels/host_device.h"
#include "kernels/variant.h"

namespace warpline {

inline constexpr int kGemvThreads = 256, kGemvWarps = kGemvThreads / 32;
// The number of columns of M that a warp reads at the same time if columns are contiguous (along_k), for a
// GemvPlan with `vectors` rows of V.
WARPLINE_HOST_DEVICE constexpr int GemvRowsPerWarp(std::int64_t vectors) { return vectors > 8 ? 2 : 4; }

// `vectors` rows V(i, k) times the matrix M(k, j) with `columns` columns. V is op(A) and M is op(B). If
// `swapped`, they are the transposes of op(B) and op(A), and the result is the transpose of D.
struct GemvPlan {
  bool swapped = false;
  std::int64_t vectors = 0, columns = 0;
  // V(i, k) lies at i * vector_row + k * vector_k. M(k, j) lies at k + j * ld if along_k, and otherwise at k
  // * ld + j. vector_matrix and matrix are the distances between matrices in elements.
  std::int64_t vector_row = 0, vector_k = 0, vector_matrix = 0;
  std::int64_t ld = 0, matrix = 0;
  bool along_k = false;
  // True if V is first copied to rows that are dense and aligned, gathered_row elements apart.
  bool gathers = false;
  std::int64_t gathered_row = 0, gathered_count = 0;

  std::int64_t tile = 0;     // columns per CTA
  int warps_k = kGemvWarps;  // number of its warps that share the k of a column
  std::int64_t splits = 1;   // number of CTAs that share the k of a tile
  std::int64_t depth = 0;    // range of k per split
  std::int64_t batch = 0;

  std::int64_t TilesAcross() const { return CeilDiv(columns, tile); }
  bool HasPartials() const { return splits > 1 || !along_k; }
  double GatheredElements() const {
    return gathers ? static_cast<double>(gathered_count) * static_cast<double>(vectors) *
                         static_cast<double>(gathered_row)
                   : 0;
  }
  double PartialElements() const {
    return HasPartials() ? static_cast<double>(batch) * static_cast<double>(splits) *
                               static_cast<double>(vectors) * static_cast<double>(columns)
                         : 0;
  }
};

GemvPlan PlanGemv(const GemmProblem& problem, const DeviceTraits& traits);

// The offsets of the parts of the workspace. Valid only for plans that fit.
struct GemvLayout {
  std::size_t partials, end;

  GemvLayout(const GemvPlan& plan, DType dtype);
};

}  // namespace warpline

#endif  // WARPLINE_KERNELS_GEMM_GEMV_PLAN_H_
