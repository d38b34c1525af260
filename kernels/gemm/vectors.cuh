// Loads operands in 16-byte vectors, transposed or not, and checks whether a problem allows that.
#ifndef WARPLINE_KERNELS_GEMM_VECTORS_CUH_
#define WARPLINE_KERNELS_GEMM_VECTORS_CUH_

#include <cstdint>

#include "kernels/gemm/device.cuh"
#include "kernels/gpu/vector16.h"

namespace warpline {

// Loads elements [first, first + kSize) of a row with `count` elements; 0 beyond its end. The row and `first`
// must be multiples of 16 bytes.
template <typename T>
__device__ Vector16<T> LoadGemmVector(const T* row, std::int64_t first, std::int64_t count) {
  using Vector = Vector16<T>;
  if (first + Vector::kSize <= count) return *reinterpret_cast<const Vector*>(row + first);
  Vector vector;
#pragma unroll
  for (int e = 0; e < Vector::kSize; ++e) vector.elements[e] = first + e < count ? row[first + e] : T(0.0f);
  return vector;
}

// Loads a kRows x kColumns tile of op(X) with kThreads threads, in vectors along the rows of X as stored in
// memory. The vectors stay in registers, so that they can be loaded long before they are stored.
template <typename T, int kRows, int kColumns, int kThreads>
class GemmTileLoad {
 public:
  using Vector = Vector16<T>;
  static constexpr int kVector = Vector::kSize;
  static constexpr int kLoads = (kRows * kColumns / kVector + kThreads - 1) / kThreads;

  // Loads the tile at (row0, column0) of op(X), which has rows x columns elements; 0 beyond them.
  __device__ void Load(const GemmOperand<T>& source, std::int64_t row0, std::int64_t column0,
                       std::int64_t rows, std::int64_t columns, int thread) {
    ForEach(source.trans, thread, [&](int load, int i, int j) {
      const std::int64_t row = row0 + i, column = column0 + j;
      const bool is_inside = source.trans ? column < columns : row < rows;
      vectors_[load] =
          LoadGemmVector(source.data + (source.trans ? column : row) * source.ld, source.trans ? row : column,
                         !is_inside     ? 0
                         : source.trans ? rows
                                        : columns);
    });
  }

  // Calls put(i, j, element) for each loaded element with its position in the tile.
  template <typename Put>
  __device__ void ForEachElement(bool trans, int thread, Put put) const {
    ForEach(trans, thread, [&](int load, int i, int j) {
#pragma unroll
      for (int e = 0; e < kVector; ++e) {
        put(trans ? i + e : i, trans ? j : j + e, vectors_[load].elements[e]);
      }
    });
  }
  // Calls put(i, j, vector) for each vector with the position of its first element.
  template <typename Put>
  __device__ void ForEachVector(bool trans, int thread, Put put) const {
    ForEach(trans, thread, [&](int load, int i, int j) { put(i, j, vectors_[load]); });
  }

 private:
  template <typename Visit>
  __device__ static void ForEach(bool trans, int thread, Visit visit) {
    const int per_row = (trans ? kRows : kColumns) / kVector;
#pragma unroll
    for (int load = 0; load < kLoads; ++load) {
      const int index = thread + load * kThreads;
      if (kRows * kColumns / kVector % kThreads != 0 && index >= kRows * kColumns / kVector) break;
      const int along = index % per_row * kVector, across = index / per_row;
      visit(load, trans ? along : across, trans ? across : along);
    }
  }

  Vector vectors_[kLoads];
};

// True if every row of A and B starts at a multiple of 16 bytes.
inline bool AreGemmOperandsAligned(const GemmProblem& problem, const Operands& operands) {
  const auto is_aligned = [](const void* base) { return reinterpret_cast<std::uintptr_t>(base) % 16 == 0; };
  return is_aligned(operands.in[0]) && is_aligned(operands.in[1]) && AreGemmRowsAligned(problem);
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_GEMM_VECTORS_CUH_
