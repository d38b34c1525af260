// Variant `shared`: one thread an element of D, tiles of A and B in shared memory. Any shape, leading
// dimension, alignment and batch; accumulates in f32 (f64 for f64, modulo 2^32 for i8) in the order of k: the
// oracle.
#include "kernels/gemm/epilogue.h"
#include "kernels/gemm/gemm_kernels.h"
#include "kernels/gpu/real.cuh"
#include "kernels/launch_grids.h"

namespace warpline {
namespace {

constexpr int kTile = 32;  // a warp reads one row of a tile: coalesced, whatever is transposed

template <typename Wide>
__device__ Wide AlphaOf(const StepScalars& scalars) {
  if constexpr (std::is_integral_v<Wide>) {
    return static_cast<Wide>(scalars.alpha_i64);
  } else if constexpr (std::is_same_v<Wide, double>) {
    return scalars.alpha_f64;
  } else {
    return scalars.alpha_f32;
  }
}

template <typename Wide>
__device__ Wide BetaOf(const StepScalars& scalars) {
  if constexpr (std::is_integral_v<Wide>) {
    return static_cast<Wide>(scalars.beta_i64);
  } else if constexpr (std::is_same_v<Wide, double>) {
    return scalars.beta_f64;
  } else {
    return scalars.beta_f32;
  }
}

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
    value = Widen<Wide>(trans ? source[column * ld + row] : source[row * ld + column]);
  tile[i][j] = value;
}

// One CTA of kTile x kTile threads computes one tile of one matrix of D.
template <typename T, typename Out, typename Wide>
__global__ void __launch_bounds__(kTile* kTile)
    GemmShared(const T* a, const T* b, const Out* c, const Out* bias, Out* d, const StepScalars* scalars,
               const __grid_constant__ GemmProblem problem, std::int64_t tiles_m, std::int64_t tiles_n,
               std::int64_t first_tile) {
  __shared__ Wide tile_a[kTile][kTile + 1], tile_b[kTile][kTile + 1];

  std::int64_t index = first_tile + blockIdx.x;
  const std::int64_t column0 = index % tiles_n * kTile;
  index /= tiles_n;
  const std::int64_t row0 = index % tiles_m * kTile;
  const std::int64_t matrix = index / tiles_m;
  const GemmBatch::Matrices at = problem.batch.At(matrix);
  a += at.a * (problem.trans_a ? problem.k : problem.m) * problem.lda;
  b += at.b * (problem.trans_b ? problem.n : problem.k) * problem.ldb;

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
  Wide value = problem.k == 0 ? Wide{0} : AlphaOf<Wide>(*scalars) * sum;
  const Wide beta = BetaOf<Wide>(*scalars);
  if (problem.has_c && beta != 0) {
    value += beta * Widen<Wide>(c[(at.c * problem.m + row) * problem.ldc + column]);
  }
  if constexpr (!std::is_integral_v<Wide>) {
    if (problem.has_bias) value += Widen<Wide>(bias[column]);
    value = Activate(problem.activation, value);
  }
  d[(matrix * problem.m + row) * problem.n + column] = Narrow<Out>(value);
}

template <typename T, typename Out, typename Wide>
cudaError_t Launch(const GemmProblem& problem, const Operands& operands, cudaStream_t stream) {
  const std::int64_t tiles_m = CeilDiv(problem.m, kTile), tiles_n = CeilDiv(problem.n, kTile);
  const void* bias = problem.has_bias ? operands.in[problem.BiasIndex()] : nullptr;
  return LaunchGrids(tiles_m * tiles_n * problem.batch.Count(), [&](std::int64_t first, unsigned grid) {
    GemmShared<T, Out, Wide><<<grid, dim3(kTile, kTile), 0, stream>>>(
        static_cast<const T*>(operands.in[0]), static_cast<const T*>(operands.in[1]),
        static_cast<const Out*>(operands.in[2]), static_cast<const Out*>(bias),
        static_cast<Out*>(operands.out), operands.scalars, problem, tiles_m, tiles_n, first);
  });
}

}  // namespace

cudaError_t LaunchGemmShared(const GemmProblem& problem, const Operands& operands,
                             const CudaContext& /*context*/, cudaStream_t stream) {
  const bool to_f32 = problem.OutDType() == DType::kF32;
  switch (problem.dtype) {
    case DType::kI8:
      return Launch<std::int8_t, std::int32_t, std::uint32_t>(problem, operands, stream);
    case DType::kF16:
      if (to_f32) return Launch<__half, float, float>(problem, operands, stream);
      return Launch<__half, __half, float>(problem, operands, stream);
    case DType::kBF16:
      if (to_f32) return Launch<__nv_bfloat16, float, float>(problem, operands, stream);
      return Launch<__nv_bfloat16, __nv_bfloat16, float>(problem, operands, stream);
    case DType::kF32:
      return Launch<float, float, float>(problem, operands, stream);
    case DType::kF64:
      return Launch<double, double, double>(problem, operands, stream);
    default:
      return cudaErrorNotSupported;
  }
}

}  // namespace warpline
