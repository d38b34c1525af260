// Maps each matrix of D to matrices of A, B and C.
#ifndef WARPLINE_KERNELS_GEMM_BATCH_H_
#define WARPLINE_KERNELS_GEMM_BATCH_H_

#include <cstdint>

#include "kernels/host_device.h"
#include "kernels/shape.h"

namespace warpline {

// The batch axes of D, outermost first, as few as possible. `a`, `b` and `c` are the strides along each axis,
// in matrices; 0 if an operand is broadcast. D's matrices are dense.
struct GemmBatch {
  static constexpr int kMaxAxes = kMaxRank - 2;

  int rank = 0;
  std::int64_t dims[kMaxAxes] = {};  // C arrays, because device code cannot index a std::array
  std::int64_t a[kMaxAxes] = {}, b[kMaxAxes] = {}, c[kMaxAxes] = {};

  // A batch of `size` matrices that are contiguous in every operand.
  static GemmBatch Dense(std::int64_t size) {
    GemmBatch batch;
    batch.Append(size, 1, 1, 1);
    return batch;
  }

  // Adds an innermost axis. Merges it with the previous one if it continues that axis in every operand.
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

  // Returns all axes except the innermost.
  GemmBatch Outer() const {
    GemmBatch outer = *this;
    if (outer.rank > 0) --outer.rank;
    return outer;
  }
  // Returns how many matrices of an operand with these strides (`a`, `b` or `c`) are spanned, from the first
  // to the last one used.
  std::int64_t CountAlong(const std::int64_t (&strides)[kMaxAxes]) const {
    std::int64_t last = 0;
    for (int i = 0; i < rank; ++i) {
      if (dims[i] == 0) return 0;
      last += (dims[i] - 1) * strides[i];
    }
    return last + 1;
  }

  struct Matrices {
    std::int64_t a = 0, b = 0, c = 0;
  };
  // Returns the matrices that belong to matrix i of D, 0 <= i < Count().
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

// A batch as one axis with a stride in each operand, and a loop over the other axes.
struct StridedBatch {
  // The strided axis: its number of matrices, and the distances between neighbours, in matrices.
  std::int64_t count = 1;
  std::int64_t a = 0, b = 0, c = 0, d = 0;
  // The other axes, and the strides of the loop in D, in matrices.
  GemmBatch loop;
  std::int64_t loop_d[GemmBatch::kMaxAxes] = {};

  // Makes the largest axis the strided one, the innermost if several are equal. This gives the fewest loop
  // steps.
  static StridedBatch OfLargestAxis(const GemmBatch& batch) {
    int largest = batch.rank - 1;
    for (int axis = batch.rank - 1; axis >= 0; --axis) {
      if (batch.dims[axis] > batch.dims[largest]) largest = axis;
    }
    return OfAxis(batch, largest);
  }
  // Makes no axis strided: one loop step per matrix.
  static StridedBatch OfNoAxis(const GemmBatch& batch) { return OfAxis(batch, -1); }

  // Returns the first matrix of D at step i of the loop, 0 <= i < loop.Count().
  std::int64_t DAt(std::int64_t i) const {
    std::int64_t matrix = 0;
    for (int axis = loop.rank - 1; axis >= 0; --axis) {
      matrix += i % loop.dims[axis] * loop_d[axis];
      i /= loop.dims[axis];
    }
    return matrix;
  }

 private:
  static StridedBatch OfAxis(const GemmBatch& batch, int strided) {
    StridedBatch result;
    std::int64_t step_d[GemmBatch::kMaxAxes] = {};
    std::int64_t step = 1;
    for (int axis = batch.rank - 1; axis >= 0; --axis) {
      step_d[axis] = step;
      step *= batch.dims[axis];
    }
    for (int axis = 0; axis < batch.rank; ++axis) {
      if (axis == strided) {
        result.count = batch.dims[axis];
        result.a = batch.a[axis], result.b = batch.b[axis], result.c = batch.c[axis];
        result.d = step_d[axis];
        continue;
      }
      const int to = result.loop.rank++;
      result.loop.dims[to] = batch.dims[axis];
      result.loop.a[to] = batch.a[axis], result.loop.b[to] = batch.b[axis], result.loop.c[to] = batch.c[axis];
      result.loop_d[to] = step_d[axis];
    }
    return result;
  }
};

}  // namespace warpline

#endif  // WARPLINE_KERNELS_GEMM_BATCH_H_
