// How a product of a few rows or columns is read: which operand is the large one, how it lies in memory, and
// into how many parts its k is split.
#ifndef WARPLINE_KERNELS_GEMM_GEMV_PLAN_H_
#define WARPLINE_KERNELS_GEMM_GEMV_PLAN_H_

#include <cstddef>
#include <cstdint>

#include "kernels/ceil_div.h"
#include "kernels/host_device.h"
#include "kernels/variant.h"

namespace warpline {

inline constexpr int kGemvThreads = 256, kGemvWarps = kGemvThreads / 32;
// Rows of the large operand that a warp reads side by side, where rows lie along k.
WARPLINE_HOST_DEVICE constexpr int GemvRowsPerWarp(std::int64_t vectors) { return vectors > 8 ? 2 : 4; }

// `vectors` rows V(i, k) times the matrix M(k, j) of `columns` columns. V is op(A) and M op(B), or, if
// `swapped`, the transposes of op(B) and op(A), which give the transpose of D.
struct GemvPlan {
  bool swapped = false;
  std::int64_t vectors = 0, columns = 0;
  // V(i, k) lies at i * vector_row + k * vector_k, M(k, j) at k + j * ld if along_k and at k * ld + j
  // otherwise; their matrices are so many elements apart.
  std::int64_t vector_row = 0, vector_k = 0, vector_matrix = 0;
  std::int64_t ld = 0, matrix = 0;
  bool along_k = false;
  // True if V is copied first, to rows that are dense and aligned, gathered_row elements apart.
  bool gathers = false;
  std::int64_t gathered_row = 0, gathered_count = 0;

  std::int64_t tile = 0;     // columns of a CTA
  int warps_k = kGemvWarps;  // of its warps, those that share the k of a column
  std::int64_t splits = 1;   // CTAs that share the k of a tile
  std::int64_t depth = 0;    // k of each
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

// The offsets of the parts of the workspace, from its start. Valid only for plans that fit.
struct GemvLayout {
  std::size_t partials, end;

  GemvLayout(const GemvPlan& plan, DType dtype);
};

}  // namespace warpline

#endif  // WARPLINE_KERNELS_GEMM_GEMV_PLAN_H_
