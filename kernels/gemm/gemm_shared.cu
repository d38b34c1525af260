// Variant `shared`: one thread an element of D, tiles of A and B in shared memory. Any shape, leading
// dimension and alignment; accumulates in f32 (f64 for f64) in the order of k: the oracle.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/gemm/gemm_kernels.h"
#include "kernels/launch_grids.h"

namespace warpline {
namespace {

constexpr int kTile = 32;  // a warp reads one row of a tile: coalesced, whatever is transposed

template <typename T>
struct Arithmetic {
  using type = float;
  static __device__ float Alpha(const GemmScalars& scalars) { return scalars.alpha_f32; }
  static __device__ float Beta(const GemmScalars& scalars) { return scalars.beta_f32; }
};
template <>
struct Arithmetic<double> {
  using type = double;
  static __device__ double Alpha(const GemmScalars& scalars) { return scalars.alpha_f64; }
  static __device__ double Beta(const GemmScalars& scalars) { return scalars.beta_f64; }
};

__device__ float Widen(__half x) { return __half2float(x); }
__device__ float Widen(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ float Widen(float x) { return x; }
__device__ double Widen(double x) { return x; }

__device__ void Narrow(float x, __half* y) { *y = __float2half(x); }
__device__ void Narrow(float x, __nv_bfloat16* y) { *y = __float2bfloat16(x); }
__device__ void Narrow(float x, float* y) { *y = x; }
__device__ void Narrow(double x, double* y) { *y = x; }

// The kTile x kTile tile of op(source) at (row0, column0), zero beyond its rows x columns elements. The
// source has ld elements between its rows and is transposed if `trans`. Threads run along the source's rows.
template <typename T, typename Wide>
__device__ void LoadTile(const T* source, std::int64_t ld, bool trans, std::int64_t row0,
                         std::int64_t column0, std::int64_t rows, std::int64_t columns,
                         Wide (&tile)[kTile][kTile + 1]) {
  const int i = trans ? threadIdx.x : threadIdx.y;
  const int j = trans ? threadIdx.y : threadIdx.x;
  const std::int64_t row = row0 + i, column = column0 + j;
  Wide value = 0;
  if (row < rows && column < columns)
    value = Widen(trans ? source[column * ld + row] : source[row * ld + column]);
  tile[i][j] = value;
}

// One CTA of kTile x kTile threads computes one tile of one matrix of D.
template <typename T>
__global__ void __launch_bounds__(kTile* kTile)
    GemmShared(const T* a, const T* b, const T* c, T* d, const GemmScalars* scalars,
               const GemmProblem problem, std::int64_t tiles_m, std::int64_t tiles_n,
               std::int64_t first_tile) {
  using Wide = typename Arithmetic<T>::type;
  __shared__ Wide tile_a[kTile][kTile + 1], tile_b[kTile][kTile + 1];

  std::int64_t index = first_tile + blockIdx.x;
  const std::int64_t column0 = index % tiles_n * kTile;
  index /= tiles_n;
  const std::int64_t row0 = index % tiles_m * kTile;
  const std::int64_t matrix = index / tiles_m;
  a += matrix * (problem.trans_a ? problem.k : problem.m) * problem.lda;
  b += matrix * (problem.trans_b ? problem.n : problem.k) * problem.ldb;

  Wide sum = 0;
  for (std::int64_t k0 = 0; k0 < problem.k; k0 += kTile) {
    LoadTile(a, problem.lda, problem.trans_a, row0, k0, problem.m, problem.k, tile_a);
    LoadTile(b, problem.ldb, problem.trans_b, k0, column0, problem.k, problem.n, tile_b);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kTile; ++k) sum += tile_a[threadIdx.y][k] * tile_b[k][threadIdx.x];
    __syncthreads();
  }

  const std::int64_t row = row0 + threadIdx.y, column = column0 + threadIdx.x;
  if (row >= problem.m || column >= problem.n) return;
  // Without a product alpha does not count, not even an infinite one.
  Wide value = problem.k == 0 ? Wide{0} : Arithmetic<T>::Alpha(*scalars) * sum;
  const Wide beta = Arithmetic<T>::Beta(*scalars);
  if (problem.has_c && beta != 0) {
    value += beta * Widen(c[(matrix * problem.m + row) * problem.ldc + column]);
  }
  Narrow(value, &d[(matrix * problem.m + row) * problem.n + column]);
}

template <typename T>
cudaError_t Launch(const GemmProblem& problem, const Operands& operands, cudaStream_t stream) {
  const std::int64_t tiles_m = CeilDiv(problem.m, kTile), tiles_n = CeilDiv(problem.n, kTile);
  return LaunchGrids(tiles_m * tiles_n * problem.batch, [&](std::int64_t first, unsigned grid) {
    GemmShared<T><<<grid, dim3(kTile, kTile), 0, stream>>>(
        static_cast<const T*>(operands.in[0]), static_cast<const T*>(operands.in[1]),
        static_cast<const T*>(operands.in[2]), static_cast<T*>(operands.out), operands.scalars, problem,
        tiles_m, tiles_n, first);
  });
}

}  // namespace

cudaError_t LaunchGemmShared(const GemmProblem& problem, const Operands& operands,
                             const CudaContext& /*context*/, cudaStream_t stream) {
  switch (problem.dtype) {
    case DType::kF16:
      return Launch<__half>(problem, operands, stream);
    case DType::kBF16:
      return Launch<__nv_bfloat16>(problem, operands, stream);
    case DType::kF32:
      return Launch<float>(problem, operands, stream);
    case DType::kF64:
      return Launch<double>(problem, operands, stream);
    default:
      return cudaErrorNotSupported;
  }
}

}  // namespace warpline
