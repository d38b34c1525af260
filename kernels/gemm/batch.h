// Which matrices of A, B and C go into each matrix of D.
#ifndef WARPLINE_KERNELS_GEMM_BATCH_H_
#define WARPLINE_KERNELS_GEMM_BATCH_H_

#include <cstdint>

#include "kernels/host_device.h"
#include "kernels/shape.h"

namespace warpline {

// The batch axes of D, outermost first, as few as possible. Along each, neighbours are so many matrices apart
// in A, B and C; 0 where an operand is broadcast. D's matrices are dense.
struct GemmBatch {
  static constexpr int kMaxAxes = kMaxRank - 2;

  int rank = 0;
  std::int64_t dims[kMaxAxes] = {};  // C arrays: device code cannot index a std::array
  std::int64_t a[kMaxAxes] = {}, b[kMaxAxes] = {}, c[kMaxAxes] = {};

  // `size` matrices, one after the other in every operand.
  static GemmBatch Dense(std::int64_t size) {
    GemmBatch batch;
    batch.Append(size, 1, 1, 1);
    return batch;
  }

  // Adds an innermost axis; fuses it with the one before where that continues it in every operand.
  void Append(std::int64_t size, std::int64_t stride_a, std::int64_t stride_b, std::int64_t stride_c) {
    if (size == 1) return;
    if (rank > 0 && a[rank - 1] == size * stride_a && b[rank - 1] == size * stride_b &&
        c[rank - 1] == size * stride_c) {
      dims[rank - 1] *= size;
    } else {
      dims[rank++] = size;
    }
    a[rank - 1] = stride_a;
    b[rank - 1] = stride_b;
    c[rank - 1] = stride_c;
  }

  std::int64_t Count() const {
    std::int64_t count = 1;
    for (int i = 0; i < rank; ++i) count *= dims[i];
    return count;
  }

  // All axes but the innermost.
  GemmBatch Outer() const {
    GemmBatch outer = *this;
    if (outer.rank > 0) --outer.rank;
    return outer;
  }
  // Matrices along the innermost axis.
  std::int64_t InnerCount() const { return rank > 0 ? dims[rank - 1] : 1; }

  struct Matrices {
    std::int64_t a = 0, b = 0, c = 0;
  };
  // Those of matrix i of D, 0 <= i < Count().
  WARPLINE_HOST_DEVICE Matrices At(std::int64_t i) const {
    Matrices matrices;
    for (int axis = rank - 1; axis >= 0; --axis) {
      const std::int64_t rest = i / dims[axis];
      const std::int64_t coordinate = i - rest * dims[axis];
      matrices.a += coordinate * a[axis];
      matrices.b += coordinate * b[axis];
      matrices.c += coordinate * c[axis];
      i = rest;
    }
    return matrices;
  }

  friend bool operator==(const GemmBatch& x, const GemmBatch& y) {
    if (x.rank != y.rank) return false;
    for (int i = 0; i < x.rank; ++i) {
      if (x.dims[i] != y.dims[i] || x.a[i] != y.a[i] || x.b[i] != y.b[i] || x.c[i] != y.c[i]) return false;
    }
    return true;
  }
};

}  // namespace warpline

#endif  // WARPLINE_KERNELS_GEMM_BATCH_H_
