// Variant `vectorized`: a thread computes a 16-byte vector of D, so that global memory and the tile of B are
// accessed in vectors. Four multiplications (two in f64) need one load of a word of A and one of a vector of
// B.
//
// Limit: still shared memory.
// Next, `register_tiled`: each thread computes a square of D. Its loads grow with the side, its
// multiplications with the area.
#include "kernels/gemm/kernels.h"
#include "kernels/gemm/vectors.cuh"
#include "kernels/ladder/gemm/kernels.h"

namespace warpline {
namespace {

constexpr int kRows = 32, kDepth = 32, kSide = 32;  // kSide threads along a row of D
constexpr int kThreads = kRows * kSide;

template <typename Types>
__global__ void __launch_bounds__(kThreads)
    GemmVectorized(const __grid_constant__ GemmArgs<Types> args, std::int64_t first_tile) {
  using T = typename Types::In;
  using Vector = Vector16<T>;
  constexpr int kColumns = kSide * Vector::kSize;
  __shared__ T tile_a[kRows][kDepth];
  __shared__ Vector tile_b[kDepth][kSide];
  const GemmProblem& p = args.problem;
  const GemmTile tile = TileAt(args, first_tile + blockIdx.x, kRows, kColumns);
  const GemmBatch::Matrices matrices = p.batch.At(tile.matrix);
  const auto a = OperandA(args, matrices.a);
  const auto b = OperandB(args, matrices.b);
  const int thread = static_cast<int>(threadIdx.x);
  const int x = thread % kSide, y = thread / kSide;

  T sums[Vector::kSize] = {};
  for (std::int64_t k0 = 0; k0 < p.k; k0 += kDepth) {
    GemmTileLoad<T, kRows, kDepth, kThreads> load_a;
    GemmTileLoad<T, kDepth, kColumns, kThreads> load_b;
    load_a.Load(a, tile.row0, k0, p.m, p.k, thread);
    load_b.Load(b, k0, tile.column0, p.k, p.n, thread);
    __syncthreads();  // the previous tiles have been used
    load_a.ForEachElement(a.trans, thread, [&](int i, int j, T element) { tile_a[i][j] = element; });
    if (b.trans) {
      load_b.ForEachElement(true, thread, [&](int i, int j, T element) {
        tile_b[i][j / Vector::kSize].elements[j % Vector::kSize] = element;
      });
    } else {
      load_b.ForEachVector(false, thread,
                           [&](int i, int j, const Vector& v) { tile_b[i][j / Vector::kSize] = v; });
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
      const T from_a = tile_a[y][k];
      const Vector from_b = tile_b[k][x];
#pragma unroll
      for (int e = 0; e < Vector::kSize; ++e) sums[e] += from_a * from_b.elements[e];
    }
  }

  const GemmEpilogue<Types> epilogue(args, tile.matrix, matrices.c);
  const std::int64_t row = tile.row0 + y, column = tile.column0 + x * Vector::kSize;
  if (row >= p.m || column >= p.n) return;  // n is a multiple of a vector
  Vector result;
#pragma unroll
  for (int e = 0; e < Vector::kSize; ++e) result.elements[e] = epilogue.Value(row, column + e, sums[e]);
  *reinterpret_cast<Vector*>(epilogue.At(row, column)) = result;
}

template <typename T>
cudaError_t Launch(const GemmProblem& problem, const Operands& operands, cudaStream_t stream) {
  using Types = GemmTypes<T, T, T>;
  const auto args = MakeGemmArgs<Types>(problem, operands, kRows, kSide * Vector16<T>::kSize);
  return LaunchGrids(args.Tiles(), [&](std::int64_t first, unsigned grid) {
    GemmVectorized<Types><<<grid, kThreads, 0, stream>>>(args, first);
  });
}

}  // namespace

cudaError_t LaunchGemmVectorized(const GemmProblem& problem, const Operands& operands,
                                 const CudaContext& /*context*/, cudaStream_t stream) {
  if (!AreGemmOperandsAligned(problem, operands)) return cudaErrorNotSupported;
  if (reinterpret_cast<std::uintptr_t>(operands.out) % 16 != 0) return cudaErrorNotSupported;
  return problem.dtype == DType::kF64 ? Launch<double>(problem, operands, stream)
                                      : Launch<float>(problem, operands, stream);
}

}  // namespace warpline
