// Variant `double_buffered`: `register_tiled` with two buffers in shared memory. While threads multiply one
// pair of tiles, the next is on its way from global memory into their registers, in vectors of 16 bytes; one
// barrier a tile instead of two. The f32 units are the limit, and the instructions that feed them. The next
// rungs, `wmma` and `wgmma`, leave multiplications to the tensor cores, which take 16-bit elements.
#include "kernels/gemm/fragment.cuh"
#include "kernels/gemm/kernels.h"
#include "kernels/gemm/vectors.cuh"

namespace warpline {
namespace {

template <typename Types>
__global__ void __launch_bounds__(kGemmThreads, sizeof(typename Types::In) == 4 ? 2 : 1)
    GemmDoubleBuffered(const __grid_constant__ GemmArgs<Types> args, std::int64_t first_tile) {
  using T = typename Types::In;
  constexpr int kDepth = 64 / sizeof(T);  // both buffers of both tiles stay under 48 KiB
  __shared__ alignas(16) T tiles_a[2][kDepth][kGemmTileStride];
  __shared__ alignas(16) T tiles_b[2][kDepth][kGemmTileStride];
  const GemmProblem& p = args.problem;
  const GemmTile tile = TileAt(args, first_tile + blockIdx.x, kGemmTile, kGemmTile);
  const GemmBatch::Matrices matrices = p.batch.At(tile.matrix);
  const auto a = OperandA(args, matrices.a);
  const auto b = OperandB(args, matrices.b);
  const int thread = static_cast<int>(threadIdx.x);

  GemmTileLoad<T, kGemmTile, kDepth, kGemmThreads> load_a;
  GemmTileLoad<T, kDepth, kGemmTile, kGemmThreads> load_b;
  const auto load = [&](std::int64_t k0) {
    load_a.Load(a, tile.row0, k0, p.m, p.k, thread);
    load_b.Load(b, k0, tile.column0, p.k, p.n, thread);
  };
  const auto store = [&](int buffer) {
    // In shared memory k goes across, so that what runs along k has to be scattered.
    if (a.trans) {
      load_a.ForEachVector(true, thread, [&](int i, int j, const Vector16<T>& v) {
        *reinterpret_cast<Vector16<T>*>(&tiles_a[buffer][j][i]) = v;
      });
    } else {
      load_a.ForEachElement(false, thread, [&](int i, int j, T e) { tiles_a[buffer][j][i] = e; });
    }
    if (b.trans) {
      load_b.ForEachElement(true, thread, [&](int i, int j, T e) { tiles_b[buffer][i][j] = e; });
    } else {
      load_b.ForEachVector(false, thread, [&](int i, int j, const Vector16<T>& v) {
        *reinterpret_cast<Vector16<T>*>(&tiles_b[buffer][i][j]) = v;
      });
    }
  };
  load(0);
  store(0);
  __syncthreads();

  GemmFragment<T> fragment(thread);
  int buffer = 0;
  for (std::int64_t k0 = 0; k0 < p.k; k0 += kDepth) {
    const bool has_next = k0 + kDepth < p.k;
    if (has_next) load(k0 + kDepth);
#pragma unroll
    for (int k = 0; k < kDepth; ++k) fragment.Add(tiles_a[buffer][k], tiles_b[buffer][k]);
    // The other buffer was last read before the barrier of the step before.
    if (has_next) store(buffer ^ 1);
    __syncthreads();
    buffer ^= 1;
  }
  fragment.Store(GemmEpilogue<Types>(args, tile.matrix, matrices.c), tile);
}

template <typename T>
cudaError_t Launch(const GemmProblem& problem, const Operands& operands, cudaStream_t stream) {
  using Types = GemmTypes<T, T, T>;
  const auto args = MakeGemmArgs<Types>(problem, operands, kGemmTile, kGemmTile);
  return LaunchGrids(args.Tiles(), [&](std::int64_t first, unsigned grid) {
    GemmDoubleBuffered<Types><<<grid, kGemmThreads, 0, stream>>>(args, first);
  });
}

}  // namespace

cudaError_t LaunchGemmDoubleBuffered(const GemmProblem& problem, const Operands& operands,
                                     const CudaContext& /*context*/, cudaStream_t stream) {
  if (!AreGemmOperandsAligned(problem, operands)) return cudaErrorNotSupported;
  return problem.dtype == DType::kF64 ? Launch<double>(problem, operands, stream)
                                      : Launch<float>(problem, operands, stream);
}

}  // namespace warpline
