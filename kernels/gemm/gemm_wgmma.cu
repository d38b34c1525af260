// Variant `wgmma`: the tensor cores of Hopper as they are meant to be used. A CTA of three warpgroups stays
// on its multiprocessor and computes tile after tile of 128 x 256 elements of D: one warpgroup has the tensor
// memory accelerator fill a ring of tiles of A and B in shared memory, the other two multiply, each 64 rows,
// with instructions that read shared memory themselves. Tails are zeros from the accelerator and stores that
// are left out. What remains of a gap to cuBLAS: both multiplying warpgroups store D at the same time, while
// the tensor cores wait; and neighbouring CTAs load the same tiles, which a cluster could share.
#include <algorithm>
#include <cstring>

#include "kernels/gemm/gemm_kernels.h"
#include "kernels/gemm/gemm_vectors.cuh"
#include "kernels/gemm/hopper.cuh"
#include "kernels/gemm/tensor_map.h"

namespace warpline {
namespace {

constexpr int kTileM = 128, kTileN = 256, kDepth = 64;
constexpr int kStages = 4;
constexpr int kConsumers = 2;  // warpgroups
constexpr int kWarpgroup = 128;
constexpr int kThreads = (1 + kConsumers) * kWarpgroup;
constexpr int kElementBytes = 2;
constexpr int kTileBytesA = kTileM * kDepth * kElementBytes, kTileBytesB = kTileN * kDepth * kElementBytes;
constexpr int kStageBytes = kTileBytesA + kTileBytesB;
constexpr int kSwizzleAlignment = 1024;
constexpr int kSharedBytes = kStages * kStageBytes + kSwizzleAlignment;

struct TensorMaps {
  CUtensorMap a, b;
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

constexpr int kBoxBytes = 64 * 64 * kElementBytes;  // 64 x 64 elements, whichever way they lie
// Tiles that run at the same time are to need few rows of A and columns of B: they go down this many tiles
// before they go right.
constexpr int kGroup = 16;

// Which stage of the ring is next, and the parity of its phase.
struct RingPosition {
  int stage = 0;
  std::uint32_t parity = 0;

  __device__ void Advance() {
    if (++stage == kStages) {
      stage = 0;
      parity ^= 1;
    }
  }
};

struct Ring {
  Mbarrier full[kStages], empty[kStages];
};

template <typename Types>
__device__ GemmTile WgmmaTileAt(const GemmArgs<Types>& args, std::int64_t index) {
  GemmTile tile;
  const std::int64_t per_matrix = args.tiles_m * args.tiles_n;
  tile.matrix = index / per_matrix;
  index -= tile.matrix * per_matrix;
  const std::int64_t first = index / (kGroup * args.tiles_n) * kGroup;
  const std::int64_t height = min(std::int64_t{kGroup}, args.tiles_m - first);
  index -= first * args.tiles_n;
  tile.row0 = (first + index % height) * kTileM;
  tile.column0 = index / height * kTileN;
  return tile;
}

// Fills the ring with the tiles of A and B, in the order in which they will be multiplied. One thread.
template <typename Types, bool kTransA, bool kTransB>
__device__ void Produce(const GemmArgs<Types>& args, const TensorMaps& maps, unsigned char* stages,
                        Ring& ring, std::int64_t tiles) {
  RingPosition at;
  for (std::int64_t index = blockIdx.x; index < tiles; index += gridDim.x) {
    const GemmTile tile = WgmmaTileAt(args, index);
    const GemmBatch::Matrices matrices = args.problem.batch.At(tile.matrix);
    const int row0 = static_cast<int>(tile.row0), column0 = static_cast<int>(tile.column0);
    const int matrix_a = static_cast<int>(matrices.a), matrix_b = static_cast<int>(matrices.b);
    for (std::int64_t k0 = 0; k0 < args.problem.k; k0 += kDepth) {
      const int k = static_cast<int>(k0);
      Mbarrier& full = ring.full[at.stage];
      ring.empty[at.stage].Wait(at.parity ^ 1);
      full.ArriveExpectBytes(kStageBytes);
      unsigned char* const a = stages + at.stage * kStageBytes;
      unsigned char* const b = a + kTileBytesA;
      if constexpr (kTransA) {
        for (int i = 0; i < kTileM / 64; ++i)
          LoadBox(a + i * kBoxBytes, maps.a, full, row0 + i * 64, k, matrix_a);
      } else {
        LoadBox(a, maps.a, full, k, row0, matrix_a);
      }
      if constexpr (kTransB) {
        LoadBox(b, maps.b, full, k, column0, matrix_b);
      } else {
        for (int i = 0; i < kTileN / 64; ++i)
          LoadBox(b + i * kBoxBytes, maps.b, full, column0 + i * 64, k, matrix_b);
      }
      at.Advance();
    }
  }
}

// Of four neighbouring lanes, lane q gets words[q] of each, in their order.
__device__ void TransposeQuad(std::uint32_t (&words)[4], int q) {
#pragma unroll
  for (int mask = 2; mask > 0; mask /= 2) {
    const bool is_upper = (q & mask) != 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if ((i & mask) != 0) continue;
      const std::uint32_t received =
          __shfl_xor_sync(0xffffffffu, is_upper ? words[i] : words[i + mask], mask);
      (is_upper ? words[i] : words[i + mask]) = received;
    }
  }
}

// Two neighbouring elements of D.
template <typename Out>
struct alignas(2 * sizeof(Out)) Pair {
  Out first, second;
};

// Stores what a thread has of one row: of every 8 columns from `d` on two, as it is lane q of the four that
// have the row. Only the first `columns` are inside of D, and none of them if it is 0. `as_vectors`: rows of
// D are multiples of 16 bytes (of 8 for f32, whose pairs fill sectors as they are).
template <typename Out>
__device__ void StoreRow(Out* d, int columns, int q, const float2 (&sums)[kTileN / 8], bool as_vectors) {
  const auto pair_at = [&](int j) { return Pair<Out>{Narrow<Out>(sums[j].x), Narrow<Out>(sums[j].y)}; };
  if (!as_vectors) {
#pragma unroll
    for (int j = 0; j < kTileN / 8; ++j) {
      const int column = j * 8 + q * 2;
      if (column < columns) d[column] = pair_at(j).first;
      if (column + 1 < columns) d[column + 1] = pair_at(j).second;
    }
  } else if constexpr (sizeof(Out) == 2) {
#pragma unroll
    for (int j0 = 0; j0 < kTileN / 8; j0 += 4) {
      std::uint32_t words[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const Pair<Out> pair = pair_at(j0 + j);
        memcpy(&words[j], &pair, sizeof(pair));
      }
      TransposeQuad(words, q);
      const int column = (j0 + q) * 8;
      if (column < columns) {
        *reinterpret_cast<uint4*>(d + column) = make_uint4(words[0], words[1], words[2], words[3]);
      }
    }
  } else {
#pragma unroll
    for (int j = 0; j < kTileN / 8; ++j) {
      const int column = j * 8 + q * 2;
      if (column < columns) *reinterpret_cast<Pair<Out>*>(d + column) = pair_at(j);
    }
  }
}

// Multiplies what is in the ring; `group` of the two takes the upper or lower 64 rows of a tile.
template <typename Types, bool kTransA, bool kTransB>
__device__ void Consume(const GemmArgs<Types>& args, unsigned char* stages, Ring& ring, std::int64_t tiles,
                        int group, bool store_vectors) {
  // From 16 elements along k to the next, in descriptors' units of 16 bytes.
  constexpr int kStepA = kTransA ? 16 * 128 / 16 : 32 / 16, kStepB = kTransB ? 32 / 16 : 16 * 128 / 16;
  constexpr int kMajorA = kTransA ? 1 : 0, kMajorB = kTransB ? 0 : 1;
  const int thread = static_cast<int>(threadIdx.x) % kWarpgroup, lane = thread % 32;
  RingPosition at;
  for (std::int64_t index = blockIdx.x; index < tiles; index += gridDim.x) {
    const GemmTile tile = WgmmaTileAt(args, index);
    float sums[kTileN / 8][4];
    int last_stage = -1;
    for (std::int64_t k0 = 0; k0 < args.problem.k; k0 += kDepth) {
      ring.full[at.stage].Wait(at.parity);
      unsigned char* const a = stages + at.stage * kStageBytes + group * kBoxBytes;
      unsigned char* const b = stages + at.stage * kStageBytes + kTileBytesA;
      const std::uint64_t descriptor_a = TileDescriptor(a, kBoxBytes);
      const std::uint64_t descriptor_b = TileDescriptor(b, kBoxBytes);
      WgmmaFence();
#pragma unroll
      for (int step = 0; step < kDepth / 16; ++step) {
        Wgmma<typename Types::In, kMajorA, kMajorB>(sums, descriptor_a + step * kStepA,
                                                    descriptor_b + step * kStepB, k0 > 0 || step > 0 ? 1 : 0);
      }
      WgmmaCommit();
      // One group stays in flight; the stage of the one before is free.
      WgmmaWait<1>();
      if (last_stage >= 0 && lane == 0) ring.empty[last_stage].Arrive();
      last_stage = at.stage;
      at.Advance();
    }
    WgmmaWait<0>();
    // No read of the sums may move to before the wait, of which the compiler does not know that it completes
    // them.
#pragma unroll
    for (auto& of_eight : sums) {
#pragma unroll
      for (float& sum : of_eight) asm volatile("" : "+f"(sum)::"memory");
    }
    if (lane == 0) ring.empty[last_stage].Arrive();

    const GemmEpilogue<Types> epilogue(args, tile.matrix, args.problem.batch.At(tile.matrix).c);
    const int q = lane % 4;
    // Most products only scale: the rest, repeated for each of 128 sums, would not fit into the instruction
    // cache.
    const bool only_scales = epilogue.OnlyScales();
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::int64_t row = tile.row0 + group * 64 + thread / 32 * 16 + lane / 4 + half * 8;
      const auto columns = static_cast<int>(
          row < args.problem.m ? min(args.problem.n - tile.column0, std::int64_t{kTileN}) : std::int64_t{0});
      float2 of_row[kTileN / 8];
#pragma unroll
      for (int j = 0; j < kTileN / 8; ++j) {
        of_row[j] = {sums[j][half * 2] * epilogue.alpha(), sums[j][half * 2 + 1] * epilogue.alpha()};
      }
      if (!only_scales) {
#pragma unroll
        for (int j = 0; j < kTileN / 8; ++j) {
          const int column = j * 8 + q * 2;
          float* const pair[] = {&of_row[j].x, &of_row[j].y};
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            if (column + i < columns) {
              *pair[i] = epilogue.Finish(row, tile.column0 + column + i, sums[j][half * 2 + i]);
            }
          }
        }
      }
      StoreRow(epilogue.At(row, tile.column0), columns, q, of_row, store_vectors);
    }
  }
}

#endif

template <typename Types, bool kTransA, bool kTransB>
__global__ void __launch_bounds__(kThreads, 1)
    GemmWgmma(const __grid_constant__ GemmArgs<Types> args, const __grid_constant__ TensorMaps maps,
              std::int64_t tiles, bool store_vectors) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ unsigned char shared[];
  __shared__ Ring ring;
  unsigned char* const stages =
      shared + (kSwizzleAlignment - SharedAddress(shared) % kSwizzleAlignment) % kSwizzleAlignment;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kStages; ++stage) {
      ring.full[stage].Init(1);
      ring.empty[stage].Init(kConsumers * kWarpgroup / 32);  // one arrival a warp
    }
    FenceMbarrierInit();
  }
  __syncthreads();
  const int group = static_cast<int>(threadIdx.x) / kWarpgroup;
  // The accumulators of 64 x 256 elements are 128 registers a thread.
  if (group == kConsumers) {
    GiveRegisters<40>();
    if (threadIdx.x % kWarpgroup == 0) Produce<Types, kTransA, kTransB>(args, maps, stages, ring, tiles);
  } else {
    TakeRegisters<232>();
    Consume<Types, kTransA, kTransB>(args, stages, ring, tiles, group, store_vectors);
  }
#else
  __trap();  // selected for Hopper alone, for which sm_90a is compiled
#endif
}

template <typename Types>
cudaError_t Launch(const GemmProblem& problem, const Operands& operands, const CudaContext& context,
                   cudaStream_t stream) {
  const auto args = MakeGemmArgs<Types>(problem, operands, kTileM, kTileN);
  const std::int64_t tiles = args.Tiles();
  if (tiles == 0) return cudaSuccess;
  const GemmBatch::Matrices last = problem.batch.At(problem.batch.Count() - 1);
  const MatrixBoxes a = {.dtype = problem.dtype,
                         .data = operands.in[0],
                         .columns = problem.trans_a ? problem.m : problem.k,
                         .rows = problem.trans_a ? problem.k : problem.m,
                         .ld = problem.lda,
                         .count = last.a + 1,
                         .box_rows = problem.trans_a ? kDepth : kTileM};
  const MatrixBoxes b = {.dtype = problem.dtype,
                         .data = operands.in[1],
                         .columns = problem.trans_b ? problem.k : problem.n,
                         .rows = problem.trans_b ? problem.n : problem.k,
                         .ld = problem.ldb,
                         .count = last.b + 1,
                         .box_rows = problem.trans_b ? kTileN : kDepth};
  TensorMaps maps;
  if (cudaError_t error = MakeTensorMap(a, &maps.a); error != cudaSuccess) return error;
  if (cudaError_t error = MakeTensorMap(b, &maps.b); error != cudaSuccess) return error;
  auto* kernel = problem.trans_a
                     ? (problem.trans_b ? &GemmWgmma<Types, true, true> : &GemmWgmma<Types, true, false>)
                     : (problem.trans_b ? &GemmWgmma<Types, false, true> : &GemmWgmma<Types, false, false>);
  if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes) !=
      cudaSuccess) {
    cudaGetLastError();
    return cudaErrorNotSupported;
  }
  const std::int64_t per_store = std::is_same_v<typename Types::Out, float> ? 2 : 8;
  const bool store_vectors =
      problem.n % per_store == 0 && reinterpret_cast<std::uintptr_t>(operands.out) % 16 == 0;
  const auto grid = static_cast<unsigned>(std::min<std::int64_t>(tiles, context.traits.multiprocessors));
  kernel<<<grid, kThreads, kSharedBytes, stream>>>(args, maps, tiles, store_vectors);
  return cudaGetLastError();
}

}  // namespace

bool GemmWgmmaSupports(const GemmProblem& problem, const DeviceTraits& traits) {
  const std::int64_t greatest = std::max({problem.m, problem.n, problem.k, problem.batch.Count()});
  return traits.compute_capability == 90 && problem.k > 0 && greatest <= INT32_MAX &&
         AreGemmRowsAligned(problem);
}

cudaError_t LaunchGemmWgmma(const GemmProblem& problem, const Operands& operands, const CudaContext& context,
                            cudaStream_t stream) {
  if (!AreGemmOperandsAligned(problem, operands)) return cudaErrorNotSupported;
  return WithHalfGemmTypes(
      problem, [&]<typename Types>(Types) { return Launch<Types>(problem, operands, context, stream); });
}

}  // namespace warpline
