// The kernel of `wide_loads` and `double_buffered`: 128 x 128 tiles of D, operands in vectors of 16 bytes.
#ifndef WARPLINE_KERNELS_GEMM_VECTOR_TILE_CUH_
#define WARPLINE_KERNELS_GEMM_VECTOR_TILE_CUH_

#include "kernels/gemm/fragment.cuh"
#include "kernels/gemm/vectors.cuh"

namespace warpline {

// kBuffers: 1: all threads wait for a tile before they multiply it. 2: they load the next tile meanwhile.
template <typename Types, int kBuffers>
__global__ void __launch_bounds__(kGemmThreads, sizeof(typename Types::In) == 4 ? 2 : 1)
    GemmVectorTile(const __grid_constant__ GemmArgs<Types> args, std::int64_t first_tile) {
  using T = typename Types::In;
  constexpr int kDepth = 64 / sizeof(T);  // two buffers of both tiles stay under 48 KiB
  __shared__ alignas(16) T tiles_a[kBuffers][kDepth][kGemmTileStride];
  __shared__ alignas(16) T tiles_b[kBuffers][kDepth][kGemmTileStride];
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
    // Each row of a tile in shared memory has one k. So vectors that run along k are stored element by
    // element.
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
  GemmFragment<T> fragment(thread);
  const auto multiply = [&](int buffer) {
#pragma unroll
    for (int k = 0; k < kDepth; ++k) fragment.Add(tiles_a[buffer][k], tiles_b[buffer][k]);
  };
  if constexpr (kBuffers == 1) {
    for (std::int64_t k0 = 0; k0 < p.k; k0 += kDepth) {
      load(k0);
      store(0);
      __syncthreads();
      multiply(0);
      __syncthreads();
    }
  } else {
    load(0);
    store(0);
    __syncthreads();
    int buffer = 0;
    for (std::int64_t k0 = 0; k0 < p.k; k0 += kDepth) {
      const bool has_next = k0 + kDepth < p.k;
      if (has_next) load(k0 + kDepth);
      multiply(buffer);
      // The other buffer was last read before the barrier of the previous step.
      if (has_next) store(buffer ^ 1);
      __syncthreads();
      buffer ^= 1;
    }
  }
  fragment.Store(GemmEpilogue<Types>(args, tile.matrix, matrices.c), tile);
}

template <int kBuffers>
cudaError_t LaunchGemmVectorTile(const GemmProblem& problem, const Operands& operands, cudaStream_t stream) {
  if (!AreGemmOperandsAligned(problem, operands)) return cudaErrorNotSupported;
  const auto launch = [&]<typename T>(T) {
    using Types = GemmTypes<T, T, T>;
    const auto args = MakeGemmArgs<Types>(problem, operands, kGemmTile, kGemmTile);
    return LaunchGrids(args.Tiles(), [&](std::int64_t first, unsigned grid) {
      GemmVectorTile<Types, kBuffers><<<grid, kGemmThreads, 0, stream>>>(args, first);
    });
  };
  switch (problem.dtype) {
    case DType::kF64:
      return launch(double{});
    case DType::kI32:
    case DType::kU32:
      return launch(std::uint32_t{});
    case DType::kI64:
    case DType::kU64:
      return launch(std::uint64_t{});
    default:
      return launch(float{});
  }
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_GEMM_VECTOR_TILE_CUH_
