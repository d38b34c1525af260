// The multiplication of `register_tiled`, `wide_loads` and `double_buffered`: 256 threads compute a 128 x 128
// tile of D, 8 x 8 elements per thread.
#ifndef WARPLINE_KERNELS_GEMM_FRAGMENT_CUH_
#define WARPLINE_KERNELS_GEMM_FRAGMENT_CUH_

#include "kernels/gemm/device.cuh"

namespace warpline {

inline constexpr int kGemmTile = 128;
inline constexpr int kGemmThreads = 256;
// Row stride of a tile of A or B in shared memory, where each row has one k. The 4 padding elements after
// each row spread the stores of threads with different k over the banks. Rows stay multiples of 16 bytes.
inline constexpr int kGemmTileStride = kGemmTile + 4;

// A thread's 8 x 8 elements are four 4 x 4 squares, 64 apart. So neighbouring threads read neighbouring 16
// bytes of a tile, without bank conflicts.
template <typename Wide>
class GemmFragment {
 public:
  __device__ explicit GemmFragment(int thread) : row_(thread / 16 * 4), column_(thread % 16 * 4) {}

  // Adds the products for one k: `a` and `b` are rows of the tiles.
  __device__ void Add(const Wide* a, const Wide* b) {
    Quad from_a[2], from_b[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      from_a[half] = *reinterpret_cast<const Quad*>(a + row_ + half * 64);
      from_b[half] = *reinterpret_cast<const Quad*>(b + column_ + half * 64);
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) {
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        sums_[i][j] += from_a[i / 4].elements[i % 4] * from_b[j / 4].elements[j % 4];
      }
    }
  }

  template <typename Types>
  __device__ void Store(const GemmEpilogue<Types>& epilogue, const GemmTile& tile) const {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        epilogue.Store(tile.row0 + row_ + i / 4 * 64 + i % 4, tile.column0 + column_ + j / 4 * 64 + j % 4,
                       sums_[i][j]);
      }
    }
  }

 private:
  struct alignas(16) Quad {
    Wide elements[4];
  };

  int row_, column_;
  Wide sums_[8][8] = {};
};

}  // namespace warpline

#endif  // WARPLINE_KERNELS_GEMM_FRAGMENT_CUH_
