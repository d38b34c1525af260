// Variant `mma`: tensor cores by their own instructions (mma.sync), for f16 and bf16 on every GPU since
// Ampere. Differences from `wmma`: four stages of tiles are in flight by asynchronous copies (cp.async),
// which need no registers. Tiles are swizzled in shared memory, so that neither the copies nor ldmatrix have
// bank conflicts. The fragments of the next 16 along k are loaded while the current ones are multiplied. Sums
// are stored directly from registers. A warp has 64 x 64 elements of D, a CTA 128 x 256. The method is that
// of CUTLASS for sm_80 (https://github.com/NVIDIA/cutlass).
//
// Limit: on Hopper, mma.sync itself. It reaches half of cuBLAS on an H200, with tiles of other sizes and
// depths too (docs/benchmarks/history.md#2026-11-23-mma).
// Next, `wgmma`: instructions that use the full rate of Hopper's tensor cores.
#include <cuda_pipeline_primitives.h>

#include "kernels/allow_shared_bytes.h"
#include "kernels/gemm/kernels.h"
#include "kernels/gemm/rows.cuh"
#include "kernels/gemm/vectors.cuh"

namespace warpline {
namespace {

constexpr int kTileM = 128, kTileN = 256, kDepth = 32;
constexpr int kStages = 4, kThreads = 256;
constexpr int kWarpTile = 64, kWarpsN = kTileN / kWarpTile;
constexpr int kFragmentK = 16;                                      // k of one mma.sync
constexpr int kBlocksM = kWarpTile / 16, kBlocksN = kWarpTile / 8;  // instructions per warp
constexpr int kChunk = 8;                                           // elements in 16 bytes
constexpr int kSharedBytes = kStages * (kTileM + kTileN) * kDepth * 2;
static_assert(kSharedBytes <= 99 << 10, "more than a CTA may have on sm_86, sm_89 and sm_120");

// A tile in shared memory with the same layout as in global memory: kSize rows along k (kAlongK), or kDepth
// rows across it. The chunks of a row are permuted, so that the same chunk of 8 neighbouring rows covers all
// 32 banks.
template <bool kAlongK, int kSize>
struct Tile {
  static constexpr int kRows = kAlongK ? kSize : kDepth;
  static constexpr int kChunks = (kAlongK ? kDepth : kSize) / kChunk;  // per row
  static constexpr int kBytes = kSize * kDepth * 2;

  __device__ static unsigned Offset(unsigned row, unsigned chunk) {
    return (row * kChunks + (chunk ^ (kAlongK ? row / 2 % 4 : row % 8))) * 16;
  }
};

// Copies the tiles of an operand, one after the other along k, with zeros beyond its end.
template <typename T, bool kAlongK, int kSize>
class TileCopy {
 public:
  using Shape = Tile<kAlongK, kSize>;

  // `first`: the first row or column of op(X), which has `count` rows or columns of length `depth`.
  __device__ TileCopy(const GemmOperand<T>& operand, std::int64_t first, std::int64_t count,
                      std::int64_t depth, int thread)
      : data_(operand.data),
        ld_(operand.ld),
        row_(thread / Shape::kChunks),
        chunk_(thread % Shape::kChunks),
        across_(kAlongK ? count - first - row_ : count - first - chunk_ * kChunk),
        along_(kAlongK ? depth - chunk_ * kChunk : depth - row_),
        from_(operand.data +
              (kAlongK ? (first + row_) * ld_ + chunk_ * kChunk : row_ * ld_ + first + chunk_ * kChunk)) {}

  // Starts the copies of the next tile. `whole`: it does not extend beyond the operand. That is nearly always
  // the case, and checking it for each copy took 30 % of the time.
  __device__ void Next(unsigned char* tile, bool whole) {
    if (whole) {
#pragma unroll
      for (int i = 0; i < kCopies; ++i) {
        __pipeline_memcpy_async(Place(tile, i), from_ + i * kRowStep * ld_, 16);
      }
    } else {
#pragma unroll
      for (int i = 0; i < kCopies; ++i) {
        // The remaining rows, and the remaining elements in one row.
        const std::int64_t rows = (kAlongK ? across_ : along_) - i * kRowStep;
        const std::int64_t elements = kAlongK ? along_ : across_;
        const auto inside = static_cast<int>(
            rows > 0 ? min(max(elements, std::int64_t{0}), std::int64_t{kChunk}) : std::int64_t{0});
        const T* from = inside > 0 ? from_ + i * kRowStep * ld_ : data_;
        __pipeline_memcpy_async(Place(tile, i), from, 16, 16 - inside * sizeof(T));
      }
    }
    along_ -= kDepth;
    from_ += kAlongK ? kDepth : kDepth * ld_;
  }

 private:
  static constexpr int kRowStep = kThreads / Shape::kChunks;
  static constexpr int kCopies = Shape::kRows / kRowStep;

  __device__ unsigned char* Place(unsigned char* tile, int i) const {
    return tile + Shape::Offset(row_ + i * kRowStep, chunk_);
  }

  const T* data_;
  std::int64_t ld_;
  int row_, chunk_;
  std::int64_t across_, along_;
  const T* from_;
};

// Loads four 8 x 8 matrices of 16-bit elements; lane 8 i + r gives the address of row r of the i-th. From
// each matrix, a lane gets two neighbouring elements of row lane / 4, or of column lane / 4 with kTransposed.
template <bool kTransposed>
__device__ void LoadMatrices(std::uint32_t (&to)[4], const unsigned char* row) {
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
  if constexpr (kTransposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
  }
}

// Adds the product of a 16 x 16 and a 16 x 8 matrix.
template <typename T>
__device__ void MultiplyAdd(float (&sums)[4], const std::uint32_t (&a)[4], const std::uint32_t* b) {
  if constexpr (std::is_same_v<T, __half>) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  } else {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
}

// The operands that a warp multiplies at a time: 64 x 16 elements of A and 16 x 64 of B.
template <bool kTransA, bool kTransB>
struct Fragments {
  std::uint32_t a[kBlocksM][4], b[kBlocksN / 2][4];

  // Loads the fragments of the `step`-th 16 along k of a stage.
  __device__ void Load(const unsigned char* tile_a, const unsigned char* tile_b, int row, int column,
                       int step, int lane) {
    // The matrices are in the order of the registers of mma.sync: for A down, then along k; for B along k,
    // then to the right.
    const int in_matrix = lane % 8, first = lane / 8 % 2, second = lane / 16;
#pragma unroll
    for (int i = 0; i < kBlocksM; ++i) {
      const int m = row + i * 16 + first * 8, k = step * kFragmentK + second * 8;
      const unsigned offset = kTransA ? Tile<false, kTileM>::Offset(k + in_matrix, m / kChunk)
                                      : Tile<true, kTileM>::Offset(m + in_matrix, k / kChunk);
      LoadMatrices<kTransA>(a[i], tile_a + offset);
    }
#pragma unroll
    for (int j = 0; j < kBlocksN / 2; ++j) {
      const int n = column + j * 16 + second * 8, k = step * kFragmentK + first * 8;
      const unsigned offset = kTransB ? Tile<true, kTileN>::Offset(n + in_matrix, k / kChunk)
                                      : Tile<false, kTileN>::Offset(k + in_matrix, n / kChunk);
      LoadMatrices<!kTransB>(b[j], tile_b + offset);
    }
  }
};

template <typename Types, bool kTransA, bool kTransB>
__global__ void __launch_bounds__(kThreads, 1)
    GemmMma(const __grid_constant__ GemmArgs<Types> args, bool store_vectors, std::int64_t first_tile) {
  using T = typename Types::In;
  extern __shared__ __align__(128) unsigned char stages[];
  constexpr int kTileBytesA = Tile<!kTransA, kTileM>::kBytes;
  constexpr int kStageBytes = kTileBytesA + Tile<kTransB, kTileN>::kBytes;
  const GemmProblem& p = args.problem;
  const GemmTile tile = GroupedTileAt(args, first_tile + blockIdx.x, kTileM, kTileN);
  const GemmBatch::Matrices matrices = p.batch.At(tile.matrix);
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const int row = warp / kWarpsN * kWarpTile, column = warp % kWarpsN * kWarpTile;

  TileCopy<T, !kTransA, kTileM> copy_a(OperandA(args, matrices.a), tile.row0, p.m, p.k, thread);
  TileCopy<T, kTransB, kTileN> copy_b(OperandB(args, matrices.b), tile.column0, p.n, p.k, thread);
  const bool whole_across = tile.row0 + kTileM <= p.m && tile.column0 + kTileN <= p.n;
  std::int64_t to_copy = p.k;
  const auto copy_into = [&](int stage) {
    const bool whole = whole_across && to_copy >= kDepth;
    copy_a.Next(stages + stage * kStageBytes, whole);
    copy_b.Next(stages + stage * kStageBytes + kTileBytesA, whole);
    __pipeline_commit();
    to_copy -= kDepth;
  };
  for (int stage = 0; stage < kStages - 1; ++stage) copy_into(stage);

  constexpr int kSteps = kDepth / kFragmentK;
  static_assert(kSteps == 2, "the fragments are two, and each step has its own");
  Fragments<kTransA, kTransB> fragments[kSteps];
  float sums[kBlocksM][kBlocksN][4] = {};
  int stage = 0;
  const auto load_fragments = [&](int step) {
    const unsigned char* tile_a = stages + stage * kStageBytes;
    fragments[step].Load(tile_a, tile_a + kTileBytesA, row, column, step, lane);
  };
  const auto multiply = [&](int step) {
#pragma unroll
    for (int i = 0; i < kBlocksM; ++i) {
#pragma unroll
      for (int place = 0; place < kBlocksN; ++place) {
        const int j = i % 2 == 0 ? place : kBlocksN - 1 - place;  // neighbours share registers
        MultiplyAdd<T>(sums[i][j], fragments[step].a[i], fragments[step].b[j / 2] + j % 2 * 2);
      }
    }
  };
  __pipeline_wait_prior(kStages - 2);
  __syncthreads();
  load_fragments(0);
  for (std::int64_t k0 = 0; k0 < p.k; k0 += kDepth) {
    load_fragments(1);
    copy_into((stage + kStages - 1) % kStages);  // all warps have left this stage before the last barrier
    multiply(0);
    __pipeline_wait_prior(kStages - 2);
    __syncthreads();
    stage = (stage + 1) % kStages;
    load_fragments(0);
    multiply(1);
  }

  const GemmEpilogue<Types> epilogue(args, tile.matrix, matrices.c);
#pragma unroll
  for (int i = 0; i < kBlocksM; ++i) {
    StoreGemmRows(epilogue, tile.row0 + row + i * 16 + lane / 4, tile.column0 + column, lane % 4, sums[i],
                  store_vectors);
  }
}

}  // namespace

cudaError_t LaunchGemmMma(const GemmProblem& problem, const Operands& operands,
                          const CudaContext& /*context*/, cudaStream_t stream) {
  if (!AreGemmOperandsAligned(problem, operands)) return cudaErrorNotSupported;
  return WithHalfGemmTypes(problem, [&]<typename Types>(Types) {
    const auto args = MakeGemmArgs<Types>(problem, operands, kTileM, kTileN);
    auto* kernel = problem.trans_a
                       ? (problem.trans_b ? &GemmMma<Types, true, true> : &GemmMma<Types, true, false>)
                       : (problem.trans_b ? &GemmMma<Types, false, true> : &GemmMma<Types, false, false>);
    if (AllowSharedBytes(kernel, kSharedBytes) != cudaSuccess) return cudaErrorNotSupported;
    return LaunchGrids(args.Tiles(), [&](std::int64_t first, unsigned grid) {
      kernel<<<grid, kThreads, kSharedBytes, stream>>>(args, SuitGemmRowVectors(args), first);
    });
  });
}

}  // namespace warpline
