// Variant `wmma`: tensor cores through the WMMA API, for f16 and bf16 on every GPU since Ampere. A warp
// multiplies 64 x 32 elements of D in 16 x 16 x 16 fragments that it loads from shared memory.
//
// Limit: not the tensor cores: on an H200 it reaches only 8 % of cuBLAS. A pair of tiles is loaded, then
// multiplied, with a barrier before and after. The padded rows of a tile are stored with bank conflicts.
// Next, `mma`: it loads ahead, without registers, and knows which lane holds which sums.
#include <mma.h>

#include "kernels/gemm/kernels.h"
#include "kernels/gemm/vectors.cuh"
#include "kernels/ladder/gemm/kernels.h"

namespace warpline {
namespace {

using namespace nvcuda;

constexpr int kTile = 128, kDepth = 32, kThreads = 256;
constexpr int kFragment = 16;
constexpr int kWarpRows = 64, kWarpColumns = 32;  // 2 x 4 warps
constexpr int kFragmentsM = kWarpRows / kFragment, kFragmentsN = kWarpColumns / kFragment;
constexpr int kPad =
    8;  // elements: rows shift by 16 bytes, so that the rows of a fragment lie in other banks

// A tile of op(X) with kRows x kColumns elements, in its memory layout: with kTrans its columns are the rows
// here.
template <typename T, bool kTrans, int kRows, int kColumns>
struct SharedTile {
  static constexpr int kStride = (kTrans ? kRows : kColumns) + kPad;
  T elements[kTrans ? kColumns : kRows][kStride];

  __device__ void Put(int i, int j, const Vector16<T>& vector) {
    *reinterpret_cast<Vector16<T>*>(At(i, j)) = vector;
  }
  __device__ T* At(int i, int j) { return kTrans ? &elements[j][i] : &elements[i][j]; }
};

template <typename Types, bool kTransA, bool kTransB>
__global__ void __launch_bounds__(kThreads)
    GemmWmma(const __grid_constant__ GemmArgs<Types> args, std::int64_t first_tile) {
  using T = typename Types::In;
  using LayoutA = std::conditional_t<kTransA, wmma::col_major, wmma::row_major>;
  using LayoutB = std::conditional_t<kTransB, wmma::col_major, wmma::row_major>;
  using TileA = SharedTile<T, kTransA, kTile, kDepth>;
  using TileB = SharedTile<T, kTransB, kDepth, kTile>;
  __shared__ alignas(32) TileA tile_a;
  __shared__ alignas(32) TileB tile_b;
  __shared__ alignas(32) float patches[kThreads / 32][kFragment * kFragment];
  const GemmProblem& p = args.problem;
  const GemmTile tile = TileAt(args, first_tile + blockIdx.x, kTile, kTile);
  const GemmBatch::Matrices matrices = p.batch.At(tile.matrix);
  const auto a = OperandA(args, matrices.a);
  const auto b = OperandB(args, matrices.b);
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const int warp_row = warp / 4 * kWarpRows, warp_column = warp % 4 * kWarpColumns;

  wmma::fragment<wmma::accumulator, kFragment, kFragment, kFragment, float> sums[kFragmentsM][kFragmentsN];
#pragma unroll
  for (auto& row : sums) {
#pragma unroll
    for (auto& sum : row) wmma::fill_fragment(sum, 0.0f);
  }
  GemmTileLoad<T, kTile, kDepth, kThreads> load_a;
  GemmTileLoad<T, kDepth, kTile, kThreads> load_b;
  for (std::int64_t k0 = 0; k0 < p.k; k0 += kDepth) {
    load_a.Load(a, tile.row0, k0, p.m, p.k, thread);
    load_b.Load(b, k0, tile.column0, p.k, p.n, thread);
    __syncthreads();  // the previous tiles have been used
    load_a.ForEachVector(kTransA, thread, [&](int i, int j, const auto& v) { tile_a.Put(i, j, v); });
    load_b.ForEachVector(kTransB, thread, [&](int i, int j, const auto& v) { tile_b.Put(i, j, v); });
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kDepth; k += kFragment) {
      wmma::fragment<wmma::matrix_a, kFragment, kFragment, kFragment, T, LayoutA> from_a[kFragmentsM];
      wmma::fragment<wmma::matrix_b, kFragment, kFragment, kFragment, T, LayoutB> from_b[kFragmentsN];
#pragma unroll
      for (int i = 0; i < kFragmentsM; ++i) {
        wmma::load_matrix_sync(from_a[i], tile_a.At(warp_row + i * kFragment, k), TileA::kStride);
      }
#pragma unroll
      for (int j = 0; j < kFragmentsN; ++j) {
        wmma::load_matrix_sync(from_b[j], tile_b.At(k, warp_column + j * kFragment), TileB::kStride);
      }
#pragma unroll
      for (int i = 0; i < kFragmentsM; ++i) {
#pragma unroll
        for (int j = 0; j < kFragmentsN; ++j) wmma::mma_sync(sums[i][j], from_a[i], from_b[j], sums[i][j]);
      }
    }
  }

  // The WMMA API does not specify which lane holds which element of a fragment. So the sums go through shared
  // memory.
  const GemmEpilogue<Types> epilogue(args, tile.matrix, matrices.c);
#pragma unroll
  for (int i = 0; i < kFragmentsM; ++i) {
#pragma unroll
    for (int j = 0; j < kFragmentsN; ++j) {
      wmma::store_matrix_sync(patches[warp], sums[i][j], kFragment, wmma::mem_row_major);
      __syncwarp();
      for (int e = lane; e < kFragment * kFragment; e += 32) {
        epilogue.Store(tile.row0 + warp_row + i * kFragment + e / kFragment,
                       tile.column0 + warp_column + j * kFragment + e % kFragment, patches[warp][e]);
      }
      __syncwarp();
    }
  }
}

}  // namespace

cudaError_t LaunchGemmWmma(const GemmProblem& problem, const Operands& operands,
                           const CudaContext& /*context*/, cudaStream_t stream) {
  if (!AreGemmOperandsAligned(problem, operands)) return cudaErrorNotSupported;
  return WithHalfGemmTypes(problem, [&]<typename Types>(Types) {
    const auto args = MakeGemmArgs<Types>(problem, operands, kTile, kTile);
    auto* kernel = problem.trans_a
                       ? (problem.trans_b ? &GemmWmma<Types, true, true> : &GemmWmma<Types, true, false>)
                       : (problem.trans_b ? &GemmWmma<Types, false, true> : &GemmWmma<Types, false, false>);
    return LaunchGrids(args.Tiles(), [&](std::int64_t first, unsigned grid) {
      kernel<<<grid, kThreads, 0, stream>>>(args, first);
    });
  });
}

}  // namespace warpline
