// Variant `wgmma`: the tensor cores of Hopper with their native instructions. A CTA of three warpgroups stays
// on its multiprocessor and computes one 128 x 256 tile of D after another. In one warpgroup, the tensor
// memory accelerator fills a ring of tiles of A and B in shared memory. The other two multiply 64 rows each,
// with instructions that read shared memory directly. At the edges, the accelerator fills with zeros, and
// stores outside of D are skipped. Unaligned rows of D with 16-bit elements are stored through shared memory
// (rows.cuh).
//
// Limit: both multiplying warpgroups store D at the same time, while the tensor cores wait. Also,
// neighbouring CTAs load the same tiles, which a cluster could share. This explains the remaining gap to
// cuBLAS.
#include <algorithm>
#include <cstring>

#include "kernels/allow_shared_bytes.h"
#include "kernels/ceil_div.h"
#include "kernels/gemm/hopper.cuh"
#include "kernels/gemm/kernels.h"
#include "kernels/gemm/rows.cuh"
#include "kernels/gemm/tensor_map.h"
#include "kernels/gemm/vectors.cuh"

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
// Memory for each warp to store rows of D.
constexpr int kRowBytes = gemm_rows::StagedRows<__half, kTileN / 8>::kBytes;
constexpr int kSharedBytes =
    kStages * kStageBytes + kSwizzleAlignment + kConsumers * kWarpgroup / 32 * kRowBytes;

struct TensorMaps {
  CUtensorMap a, b;
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

constexpr int kBoxBytes = 64 * 64 * kElementBytes;  // 64 x 64 elements, in either layout
// The next stage of the ring, and the parity of its phase.
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

// Fills the ring with the tiles of A and B, in the order of their multiplication. Runs on one thread.
template <typename Types, bool kTransA, bool kTransB>
__device__ void Produce(const GemmArgs<Types>& args, const TensorMaps& maps, unsigned char* stages,
                        Ring& ring, std::int64_t tiles) {
  RingPosition at;
  for (std::int64_t index = blockIdx.x; index < tiles; index += gridDim.x) {
    const GemmTile tile = GroupedTileAt(args, index, kTileM, kTileN);
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

// Multiplies the tiles in the ring; `group` 0 or 1 computes the upper or lower 64 rows of a tile.
template <typename Types, bool kTransA, bool kTransB>
__device__ void Consume(const GemmArgs<Types>& args, unsigned char* stages, Ring& ring, std::int64_t tiles,
                        int group, bool store_vectors) {
  // The distance from 16 elements along k to the next 16, in the descriptors' units of 16 bytes.
  constexpr int kStepA = kTransA ? 16 * 128 / 16 : 32 / 16, kStepB = kTransB ? 32 / 16 : 16 * 128 / 16;
  constexpr int kMajorA = kTransA ? 1 : 0, kMajorB = kTransB ? 0 : 1;
  const int thread = static_cast<int>(threadIdx.x) % kWarpgroup, warp = thread / 32, lane = thread % 32;
  auto* const row_stage = reinterpret_cast<std::uint32_t*>(stages + kStages * kStageBytes +
                                                           (group * kWarpgroup / 32 + warp) * kRowBytes);
  RingPosition at;
  for (std::int64_t index = blockIdx.x; index < tiles; index += gridDim.x) {
    const GemmTile tile = GroupedTileAt(args, index, kTileM, kTileN);
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
      // One group stays in flight; the stage of the previous group is free.
      WgmmaWait<1>();
      if (last_stage >= 0 && lane == 0) ring.empty[last_stage].Arrive();
      last_stage = at.stage;
      at.Advance();
    }
    WgmmaWait<0>();
    // Reads of the sums must not move before the wait. The compiler does not know that the wait completes
    // them.
#pragma unroll
    for (auto& of_eight : sums) {
#pragma unroll
      for (float& sum : of_eight) asm volatile("" : "+f"(sum)::"memory");
    }
    if (lane == 0) ring.empty[last_stage].Arrive();

    const GemmEpilogue<Types> epilogue(args, tile.matrix, args.problem.batch.At(tile.matrix).c);
    const std::int64_t row0 = tile.row0 + group * 64 + warp * 16;
    if constexpr (sizeof(typename Types::Out) == 2) {
      if (!store_vectors) {
        StoreGemmRowsStaged(epilogue, row0, tile.column0, sums, row_stage);
        continue;
      }
    }
    StoreGemmRows(epilogue, row0 + lane / 4, tile.column0, lane % 4, sums, store_vectors);
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
      ring.empty[stage].Init(kConsumers * kWarpgroup / 32);  // one arrival per warp
    }
    FenceMbarrierInit();
  }
  __syncthreads();
  const int group = static_cast<int>(threadIdx.x) / kWarpgroup;
  // The accumulators of 64 x 256 elements need 128 registers per thread.
  if (group == kConsumers) {
    GiveRegisters<40>();
    if (threadIdx.x % kWarpgroup == 0) Produce<Types, kTransA, kTransB>(args, maps, stages, ring, tiles);
  } else {
    TakeRegisters<232>();
    Consume<Types, kTransA, kTransB>(args, stages, ring, tiles, group, store_vectors);
  }
#else
  __trap();  // only selected for Hopper, for which sm_90a is compiled
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
  if (AllowSharedBytes(kernel, kSharedBytes) != cudaSuccess) return cudaErrorNotSupported;
  const bool store_vectors = SuitGemmRowVectors(args);
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

double GemmWgmmaSeconds(const GemmProblem& problem, const DeviceTraits& traits) {
  // Seconds on an H200 (docs/benchmarks/2026-11-26-h200-odd-rows.md). kStep: time of a tile for each element
  // of k. kTile: time to write a tile. kBias, kC, kGelu: extra time for a bias, C and gelu. C has not been
  // measured.
  constexpr double kLaunch = 5e-6, kStep = 10e-9, kTile = 4e-6, kBias = 2.5e-6, kC = 5e-6, kGelu = 6e-6;
  double tile = kTile + kStep * static_cast<double>(problem.k);
  if (problem.has_bias) tile += kBias;
  if (problem.has_c) tile += kC;
  if (problem.activation == Activation::kGelu) tile += kGelu;
  const std::int64_t tiles = CeilDiv(problem.m, kTileM) * CeilDiv(problem.n, kTileN) * problem.batch.Count();
  return kLaunch + static_cast<double>(CeilDiv(tiles, std::max(traits.multiprocessors, 1))) * tile;
}

bool GemmWgmmaWritesFaster(const GemmProblem& problem, const DeviceTraits& traits) {
  return GemmWgmmaSupports(problem, traits) && GemmLibraryWritesSlowly(problem, traits) &&
         GemmWgmmaSeconds(problem, traits) < GemmLibrarySeconds(problem, traits);
}

cudaError_t LaunchGemmWgmma(const GemmProblem& problem, const Operands& operands, const CudaContext& context,
                            cudaStream_t stream) {
  if (!AreGemmOperandsAligned(problem, operands)) return cudaErrorNotSupported;
  return WithHalfGemmTypes(
      problem, [&]<typename Types>(Types) { return Launch<Types>(problem, operands, context, stream); });
}

}  // namespace warpline
