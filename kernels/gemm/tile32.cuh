// The kernel of `shared` and `unrolled`: one thread per element of D, with 32 x 32 tiles of A and B in shared
// memory.
#ifndef WARPLINE_KERNELS_GEMM_TILE32_CUH_
#define WARPLINE_KERNELS_GEMM_TILE32_CUH_

#include "kernels/gemm/device.cuh"

namespace warpline {

inline constexpr int kGemmTile32 = 32;  // a warp reads one row of a tile: coalesced, even if transposed

// Loads the tile of op(X) at (row0, column0), with zeros beyond its rows x columns elements. Neighbouring
// threads load along the rows of X as stored in memory.
template <typename T, typename Wide>
__device__ void LoadTile32(const GemmOperand<T>& source, std::int64_t row0, std::int64_t column0,
                           std::int64_t rows, std::int64_t columns,
                           Wide (&tile)[kGemmTile32][kGemmTile32 + 4]) {
  const int i = source.trans ? threadIdx.x : threadIdx.y;
  const int j = source.trans ? threadIdx.y : threadIdx.x;
  const std::int64_t row = row0 + i, column = column0 + j;
  Wide value = 0;
  if (row < rows && column < columns) value = Widen<Wide>(source.At(row, column));
  tile[i][j] = value;
}

// One CTA of 32 x 32 threads computes one tile of one matrix of D. kUnroll: unroll factor of the loop along k
// in a tile.
template <typename Types, int kUnroll>
__global__ void __launch_bounds__(kGemmTile32* kGemmTile32)
    GemmTile32(const __grid_constant__ GemmArgs<Types> args, std::int64_t first_tile) {
  using Wide = typename Types::Wide;
  // Padded by 16 bytes: rows stay aligned, so that several k can be loaded at once. (A transposed operand is
  // stored along columns, with four-way bank conflicts. A pad of one word would avoid them.)
  __shared__ alignas(16) Wide tile_a[kGemmTile32][kGemmTile32 + 4];
  __shared__ alignas(16) Wide tile_b[kGemmTile32][kGemmTile32 + 4];
  const GemmProblem& p = args.problem;
  const GemmTile tile = TileAt(args, first_tile + blockIdx.x, kGemmTile32, kGemmTile32);
  const GemmBatch::Matrices matrices = p.batch.At(tile.matrix);
  const auto a = OperandA(args, matrices.a);
  const auto b = OperandB(args, matrices.b);

  Wide sum = 0;
  for (std::int64_t k0 = 0; k0 < p.k; k0 += kGemmTile32) {
    LoadTile32(a, tile.row0, k0, p.m, p.k, tile_a);
    LoadTile32(b, k0, tile.column0, p.k, p.n, tile_b);
    __syncthreads();
#pragma unroll kUnroll
    for (int k = 0; k < kGemmTile32; ++k) sum += tile_a[threadIdx.y][k] * tile_b[k][threadIdx.x];
    __syncthreads();
  }
  GemmEpilogue<Types>(args, tile.matrix, matrices.c)
      .Store(tile.row0 + threadIdx.y, tile.column0 + threadIdx.x, sum);
}

template <int kUnroll>
cudaError_t LaunchGemmTile32(const GemmProblem& problem, const Operands& operands, cudaStream_t stream) {
  return WithGemmTypes(problem, [&]<typename Types>(Types) {
    const auto args = MakeGemmArgs<Types>(problem, operands, kGemmTile32, kGemmTile32);
    return LaunchGrids(args.Tiles(), [&](std::int64_t first, unsigned grid) {
      GemmTile32<Types, kUnroll><<<grid, dim3(kGemmTile32, kGemmTile32), 0, stream>>>(args, first);
    });
  });
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_GEMM_TILE32_CUH_
