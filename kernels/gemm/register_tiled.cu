// Variant `register_tiled`: 128 x 128 x 8 tiles, with 8 x 8 elements of D in the registers of a thread. So 16
// words from shared memory serve 64 multiplications. It supports any shape, alignment and type, since
// elements are loaded one by one.
//
// Limit: loads of one element each, with an address and a bounds check for every load; and a barrier before
// and after every 8 steps of k.
// Next, `wide_loads`: 16 bytes per load.
#include "kernels/gemm/fragment.cuh"
#include "kernels/gemm/kernels.h"

namespace warpline {
namespace {

constexpr int kDepth = 8;

template <typename Types>
__global__ void __launch_bounds__(kGemmThreads)
    GemmRegisterTiled(const __grid_constant__ GemmArgs<Types> args, std::int64_t first_tile) {
  using Wide = typename Types::Wide;
  __shared__ alignas(16) Wide tile_a[kDepth][kGemmTileStride];
  __shared__ alignas(16) Wide tile_b[kDepth][kGemmTileStride];
  const GemmProblem& p = args.problem;
  const GemmTile tile = TileAt(args, first_tile + blockIdx.x, kGemmTile, kGemmTile);
  const GemmBatch::Matrices matrices = p.batch.At(tile.matrix);
  const auto a = OperandA(args, matrices.a);
  const auto b = OperandB(args, matrices.b);
  const int thread = static_cast<int>(threadIdx.x);

  GemmFragment<Wide> fragment(thread);
  for (std::int64_t k0 = 0; k0 < p.k; k0 += kDepth) {
#pragma unroll
    for (int load = 0; load < kGemmTile * kDepth / kGemmThreads; ++load) {
      const int index = thread + load * kGemmThreads;
      // Neighbouring threads load along the rows of each matrix as stored in memory.
      const int row = a.trans ? index % kGemmTile : index / kDepth;
      const int k_a = a.trans ? index / kGemmTile : index % kDepth;
      const int column = b.trans ? index / kDepth : index % kGemmTile;
      const int k_b = b.trans ? index % kDepth : index / kGemmTile;
      const bool has_a = tile.row0 + row < p.m && k0 + k_a < p.k;
      const bool has_b = tile.column0 + column < p.n && k0 + k_b < p.k;
      tile_a[k_a][row] = has_a ? Widen<Wide>(a.At(tile.row0 + row, k0 + k_a)) : Wide{0};
      tile_b[k_b][column] = has_b ? Widen<Wide>(b.At(k0 + k_b, tile.column0 + column)) : Wide{0};
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kDepth; ++k) fragment.Add(tile_a[k], tile_b[k]);
    __syncthreads();
  }
  fragment.Store(GemmEpilogue<Types>(args, tile.matrix, matrices.c), tile);
}

}  // namespace

cudaError_t LaunchGemmRegisterTiled(const GemmProblem& problem, const Operands& operands,
                                    const CudaContext& /*context*/, cudaStream_t stream) {
  return WithGemmTypes(problem, [&]<typename Types>(Types) {
    const auto args = MakeGemmArgs<Types>(problem, operands, kGemmTile, kGemmTile);
    return LaunchGrids(args.Tiles(), [&](std::int64_t first, unsigned grid) {
      GemmRegisterTiled<Types><<<grid, kGemmThreads, 0, stream>>>(args, first);
    });
  });
}

}  // namespace warpline
