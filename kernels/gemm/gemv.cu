// Variant `gemv`: products with a few rows or, with swapped operands, a few columns. The large operand M is
// read once, in 16-byte vectors; each thread has eight loads in flight. The few vectors V come from shared
// memory or the L1 cache.
//
// If the rows of M lie along its columns (`Columns`), a thread owns neighbouring columns, and the warps of a
// CTA split k; CTAs split it too if there are few tiles. If the rows lie along k (`Rows`), warps share a few
// rows. Partial sums are added in a fixed order, so the bits are the same each time.
//
// Limit: device memory, up to about eight vectors. With more vectors of 16-bit types the f32 units are the
// limit, while `cublas` uses tensor cores.
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/gemm/gemv_plan.h"
#include "kernels/gemm/kernels.h"
#include "kernels/gemm/vectors.cuh"

namespace warpline {
namespace {

// The addresses of both operands, and of the partial sums that the kernels leave for the last kernel.
template <typename T, typename Wide>
struct GemvOperands {
  const T *vectors, *matrix;
  Wide* partials;  // batch x splits x vectors x columns
};

// The part of a tile that a CTA computes. Blocks are numbered along the tiles first, then the splits, then
// the batch.
struct GemvPart {
  std::int64_t column0, split, batch, first_k, end_k;
};

__device__ GemvPart PartAt(const GemvPlan& plan, std::int64_t k, std::int64_t block) {
  const std::int64_t across = (plan.columns + plan.tile - 1) / plan.tile;
  GemvPart part;
  part.column0 = block % across * plan.tile;
  block /= across;
  part.split = block % plan.splits;
  part.batch = block / plan.splits;
  part.first_k = part.split * plan.depth;
  part.end_k = part.first_k + plan.depth < k ? part.first_k + plan.depth : k;
  return part;
}

// Loads a vector that is read only once. It bypasses the L1 cache, which is for V. Returns zeros unless
// `is_inside`. It has no branch that loads would have to wait for.
template <typename T>
__device__ Vector16<T> LoadOnce(const T* from, bool is_inside) {
  union {
    uint4 words;
    Vector16<T> vector;
  } loaded{.words = {}};
  asm("{\n"
      ".reg .pred p;\n"
      "setp.ne.u32 p, %5, 0;\n"
      "@p ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];\n"
      "}"
      : "+r"(loaded.words.x), "+r"(loaded.words.y), "+r"(loaded.words.z), "+r"(loaded.words.w)
      : "l"(from), "r"(static_cast<unsigned>(is_inside)));
  return loaded.vector;
}

// Loads in flight per thread; fewer if the sums fill the registers.
__device__ constexpr int ColumnLoads(int vectors) { return vectors >= 8 ? 4 : 8; }

// kVectors: at least the number of vectors.
template <typename T, typename Wide, int kVectors>
__global__ void __launch_bounds__(kGemvThreads, 2)
    GemvColumns(const __grid_constant__ GemmProblem problem, const __grid_constant__ GemvPlan plan,
                GemvOperands<T, Wide> operands, std::int64_t first_block) {
  constexpr int kSize = Vector16<T>::kSize, kTile = 32 * kSize;
  constexpr int kLoads = ColumnLoads(kVectors), kDepth = kGemvWarps * kLoads;  // of one round of the CTA
  __shared__ alignas(16) Wide values[2][kDepth][kVectors];
  __shared__ alignas(16) Wide sums_of_warps[kGemvWarps][kTile];
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const GemvPart part = PartAt(plan, problem.k, first_block + blockIdx.x);
  const GemmBatch::Matrices at = problem.batch.At(part.batch);
  const T* vectors = operands.vectors + (plan.swapped ? at.b : at.a) * plan.vector_matrix;
  const T* matrix = operands.matrix + (plan.swapped ? at.a : at.b) * plan.matrix;
  const std::int64_t column = part.column0 + lane * kSize;

  Wide sums[kVectors][kSize] = {};
  int buffer = 0;
  for (std::int64_t k0 = part.first_k; k0 < part.end_k; k0 += kDepth, buffer ^= 1) {
    Vector16<T> loaded[kLoads];
#pragma unroll
    for (int u = 0; u < kLoads; ++u) {
      const std::int64_t k = k0 + u * kGemvWarps + warp;
      // A last vector may extend beyond the columns. Its extra elements lie before the next row, or within
      // the same 16 bytes as the end of the operand.
      loaded[u] = LoadOnce(matrix + k * plan.ld + column, k < part.end_k && column < plan.columns);
    }
    for (int index = thread; index < kDepth * kVectors; index += kGemvThreads) {
      const int i = index / kDepth, k = index % kDepth;
      const bool is_inside = i < plan.vectors && k0 + k < part.end_k;
      values[buffer][k][i] =
          is_inside ? Widen<Wide>(vectors[i * plan.vector_row + (k0 + k) * plan.vector_k]) : Wide{0};
    }
    __syncthreads();  // all threads have now read what the other buffer held two rounds ago
#pragma unroll
    for (int u = 0; u < kLoads; ++u) {
#pragma unroll
      for (int i = 0; i < kVectors; ++i) {
        const Wide value = values[buffer][u * kGemvWarps + warp][i];
#pragma unroll
        for (int e = 0; e < kSize; ++e) sums[i][e] += value * Widen<Wide>(loaded[u].elements[e]);
      }
    }
  }

  Wide* partials = operands.partials + (part.batch * plan.splits + part.split) * plan.vectors * plan.columns;
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    if (i >= plan.vectors) break;
    __syncthreads();  // the sums of the previous vector have been read
#pragma unroll
    for (int e = 0; e < kSize; ++e) sums_of_warps[warp][lane * kSize + e] = sums[i][e];
    __syncthreads();
    if (thread >= kTile || part.column0 + thread >= plan.columns) continue;
    Wide sum = 0;
#pragma unroll
    for (int w = 0; w < kGemvWarps; ++w) sum += sums_of_warps[w][thread];
    partials[i * plan.columns + part.column0 + thread] = sum;
  }
}

// Adds up each of kCount values over the lanes of a warp. At each step the lanes split the values between
// them, so that this takes about kCount exchanges, not five times as many. With at least 32 values, a lane
// ends with kCount / 32 of them, starting with number lane * kCount / 32. With fewer values, it ends with one
// sum, of that number.
template <int kCount, typename Wide>
__device__ void SumOverLanes(Wide (&values)[kCount], int lane) {
  int count = kCount;
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    if (count == 1) {
      values[0] += __shfl_xor_sync(0xffffffffu, values[0], offset);
      continue;
    }
    count /= 2;
    const bool keeps_upper = (lane & offset) != 0;
#pragma unroll
    for (int i = 0; i < kCount / 2; ++i) {
      if (i >= count) break;
      const Wide given = keeps_upper ? values[i] : values[i + count];
      const Wide kept = keeps_upper ? values[i + count] : values[i];
      values[i] = kept + __shfl_xor_sync(0xffffffffu, given, offset);
    }
  }
}

constexpr int kRowLoads = 2;  // vectors in flight for each of a warp's rows

template <typename Types, int kVectors>
__global__ void __launch_bounds__(kGemvThreads, 2)
    GemvRows(const __grid_constant__ GemmArgs<Types> args, const __grid_constant__ GemvPlan plan,
             GemvOperands<typename Types::In, typename Types::Wide> operands, std::int64_t first_block) {
  using T = typename Types::In;
  using Wide = typename Types::Wide;
  constexpr int kSize = Vector16<T>::kSize, kRows = GemvRowsPerWarp(kVectors), kCount = kRows * kVectors;
  __shared__ Wide sums_of_warps[kGemvWarps][kCount];
  const GemmProblem& problem = args.problem;
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const int group = warp / plan.warps_k;
  const GemvPart part = PartAt(plan, problem.k, first_block + blockIdx.x);
  const GemmBatch::Matrices at = problem.batch.At(part.batch);
  const T* vectors = operands.vectors + (plan.swapped ? at.b : at.a) * plan.vector_matrix;
  const std::int64_t row0 = part.column0 + group * kRows;
  const T* rows = operands.matrix + (plan.swapped ? at.a : at.b) * plan.matrix + row0 * plan.ld;

  Wide sums[kCount] = {};
  const int lane_k = warp % plan.warps_k * 32 + lane;  // among the lanes that share k
  const std::int64_t step = static_cast<std::int64_t>(plan.warps_k) * 32 * kSize;
  const std::int64_t whole_k = part.end_k / kSize * kSize;
  for (std::int64_t k0 = part.first_k + lane_k * kSize; k0 < whole_k; k0 += kRowLoads * step) {
    Vector16<T> loaded[kRowLoads][kRows];
#pragma unroll
    for (int u = 0; u < kRowLoads; ++u) {
      const std::int64_t k = k0 + u * step;
#pragma unroll
      for (int j = 0; j < kRows; ++j) {
        loaded[u][j] = LoadOnce(rows + j * plan.ld + k, k < whole_k && row0 + j < plan.columns);
      }
    }
#pragma unroll
    for (int u = 0; u < kRowLoads; ++u) {
      const std::int64_t k = k0 + u * step;
      if (k >= whole_k) break;
#pragma unroll
      for (int i = 0; i < kVectors; ++i) {
        if (i >= plan.vectors) break;
        const auto values = *reinterpret_cast<const Vector16<T>*>(vectors + i * plan.vector_row + k);
#pragma unroll
        for (int j = 0; j < kRows; ++j) {
#pragma unroll
          for (int e = 0; e < kSize; ++e) {
            sums[j * kVectors + i] += Widen<Wide>(values.elements[e]) * Widen<Wide>(loaded[u][j].elements[e]);
          }
        }
      }
    }
  }
  // Each lane handles one element of the part that is not a whole vector.
  if (const std::int64_t k = whole_k + lane_k; k < part.end_k) {
#pragma unroll
    for (int j = 0; j < kRows; ++j) {
      if (row0 + j >= plan.columns) break;
      const Wide element = Widen<Wide>(rows[j * plan.ld + k]);
#pragma unroll
      for (int i = 0; i < kVectors; ++i) {
        if (i >= plan.vectors) break;
        sums[j * kVectors + i] += Widen<Wide>(vectors[i * plan.vector_row + k]) * element;
      }
    }
  }

  SumOverLanes(sums, lane);
  if constexpr (kCount >= 32) {
#pragma unroll
    for (int e = 0; e < kCount / 32; ++e) sums_of_warps[warp][lane * (kCount / 32) + e] = sums[e];
  } else if (lane % (32 / kCount) == 0) {
    sums_of_warps[warp][lane / (32 / kCount)] = sums[0];
  }
  __syncthreads();
  const GemmEpilogue<Types> epilogue(args, part.batch, at.c);
  Wide* partials = operands.partials + (part.batch * plan.splits + part.split) * plan.vectors * plan.columns;
  for (int index = thread; index < kGemvWarps / plan.warps_k * kCount; index += kGemvThreads) {
    const int of_group = index / kCount, value = index % kCount;
    const std::int64_t i = value % kVectors, j = part.column0 + of_group * kRows + value / kVectors;
    if (i >= plan.vectors || j >= plan.columns) continue;
    Wide sum = 0;
    for (int w = 0; w < plan.warps_k; ++w) sum += sums_of_warps[of_group * plan.warps_k + w][value];
    if (plan.splits > 1) {
      partials[i * plan.columns + j] = sum;
    } else {
      epilogue.Store(plan.swapped ? j : i, plan.swapped ? i : j, sum);
    }
  }
}

// A CTA adds up the partial sums of 32 elements of D. Each of its warps adds every eighth split. Then the CTA
// finishes the elements.
template <typename Types>
__global__ void __launch_bounds__(kGemvThreads)
    GemvFinish(const __grid_constant__ GemmArgs<Types> args, const __grid_constant__ GemvPlan plan,
               const typename Types::Wide* partials, std::int64_t first_block) {
  using Wide = typename Types::Wide;
  __shared__ Wide sums_of_warps[kGemvWarps][32];
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t index = (first_block + blockIdx.x) * 32 + lane;
  const std::int64_t results = plan.vectors * plan.columns;
  const std::int64_t batch = index / results, rest = index - batch * results;
  const Wide* from = partials + batch * plan.splits * results + rest;
  Wide sum = 0;
  if (batch < plan.batch) {
#pragma unroll 8
    for (std::int64_t split = warp; split < plan.splits; split += kGemvWarps) sum += from[split * results];
  }
  sums_of_warps[warp][lane] = sum;
  __syncthreads();
  if (warp != 0 || batch >= plan.batch) return;
  sum = 0;
#pragma unroll
  for (int w = 0; w < kGemvWarps; ++w) sum += sums_of_warps[w][lane];
  const std::int64_t i = rest / plan.columns, j = rest - i * plan.columns;
  const GemmEpilogue<Types> epilogue(args, batch, args.problem.batch.At(batch).c);
  epilogue.Store(plan.swapped ? j : i, plan.swapped ? i : j, sum);
}

// Copies V to count x vectors rows of gathered_row elements, with zeros after the end of k.
template <typename T>
__global__ void __launch_bounds__(kGemvThreads)
    GemvGather(const __grid_constant__ GemvPlan plan, std::int64_t k, const T* from, T* to,
               std::int64_t first_block) {
  const std::int64_t index = (first_block + blockIdx.x) * kGemvThreads + threadIdx.x;
  const std::int64_t row = index / plan.gathered_row, at = index - row * plan.gathered_row;
  const std::int64_t matrix = row / plan.vectors, i = row - matrix * plan.vectors;
  if (matrix >= plan.gathered_count) return;
  to[index] = at < k ? from[matrix * plan.vector_matrix + i * plan.vector_row + at * plan.vector_k] : T(0.0f);
}

// Calls launch(std::integral_constant) with a number of vectors for which kernels exist.
template <typename T, typename Launch>
cudaError_t WithVectors(std::int64_t vectors, Launch launch) {
  if (vectors <= 1) return launch(std::integral_constant<int, 1>());
  if (vectors <= 4) return launch(std::integral_constant<int, 4>());
  if (vectors <= 8) return launch(std::integral_constant<int, 8>());
  if constexpr (sizeof(T) >= 4) {
    if (vectors <= 16) return launch(std::integral_constant<int, 16>());
  }
  return cudaErrorNotSupported;
}

template <typename Types>
cudaError_t LaunchFinish(const GemmProblem& problem, const Operands& operands, const GemvPlan& plan,
                         const typename Types::Wide* partials, cudaStream_t stream) {
  const auto args = MakeGemmArgs<Types>(problem, operands, 1, 1);
  const std::int64_t blocks = CeilDiv(plan.vectors * plan.columns * plan.batch, 32);
  return LaunchGrids(blocks, [&](std::int64_t first, unsigned grid) {
    GemvFinish<Types><<<grid, kGemvThreads, 0, stream>>>(args, plan, partials, first);
  });
}

template <typename Types>
cudaError_t Launch(const GemmProblem& problem, const Operands& operands, GemvPlan plan, cudaStream_t stream) {
  using T = typename Types::In;
  using Wide = typename Types::Wide;
  const GemvLayout layout(plan, problem.dtype);
  if (operands.workspace_bytes < layout.end) return cudaErrorNotSupported;
  auto* workspace = static_cast<std::byte*>(operands.workspace);
  const GemvOperands<T, Wide> source = {.vectors = static_cast<const T*>(operands.in[plan.swapped ? 1 : 0]),
                                        .matrix = static_cast<const T*>(operands.in[plan.swapped ? 0 : 1]),
                                        .partials = reinterpret_cast<Wide*>(workspace + layout.partials)};
  const auto is_aligned = [](const void* base) { return reinterpret_cast<std::uintptr_t>(base) % 16 == 0; };
  const bool reads_vectors_in_place = plan.along_k && !plan.gathers;
  if (!is_aligned(source.matrix) || (reads_vectors_in_place && !is_aligned(source.vectors))) {
    return cudaErrorNotSupported;
  }
  const std::int64_t blocks = plan.TilesAcross() * plan.splits * plan.batch;
  cudaError_t error = cudaSuccess;
  if (!plan.along_k) {
    error = WithVectors<T>(plan.vectors, [&]<int kVectors>(std::integral_constant<int, kVectors>) {
      return LaunchGrids(blocks, [&](std::int64_t first, unsigned grid) {
        GemvColumns<T, Wide, kVectors><<<grid, kGemvThreads, 0, stream>>>(problem, plan, source, first);
      });
    });
  } else {
    GemvOperands<T, Wide> dense = source;
    if (plan.gathers) {
      auto* gathered = reinterpret_cast<T*>(workspace);
      const std::int64_t elements = plan.gathered_count * plan.vectors * plan.gathered_row;
      error = LaunchGrids(CeilDiv(elements, kGemvThreads), [&](std::int64_t first, unsigned grid) {
        GemvGather<T><<<grid, kGemvThreads, 0, stream>>>(plan, problem.k, source.vectors, gathered, first);
      });
      if (error != cudaSuccess) return error;
      dense.vectors = gathered;
      plan.vector_row = plan.gathered_row;
      plan.vector_matrix = plan.vectors * plan.gathered_row;
    }
    const auto args = MakeGemmArgs<Types>(problem, operands, 1, 1);
    error = WithVectors<T>(plan.vectors, [&]<int kVectors>(std::integral_constant<int, kVectors>) {
      return LaunchGrids(blocks, [&](std::int64_t first, unsigned grid) {
        GemvRows<Types, kVectors><<<grid, kGemvThreads, 0, stream>>>(args, plan, dense, first);
      });
    });
  }
  if (error != cudaSuccess || !plan.HasPartials()) return error;
  // The types of A and B no longer matter here.
  return LaunchFinish<GemmTypes<typename Types::Out, typename Types::Out, Wide>>(problem, operands, plan,
                                                                                 source.partials, stream);
}

}  // namespace

cudaError_t LaunchGemmGemv(const GemmProblem& problem, const Operands& operands, const CudaContext& context,
                           cudaStream_t stream) {
  const GemvPlan plan = PlanGemv(problem, context.traits);
  if (plan.vectors == 0 || plan.batch == 0) return cudaSuccess;
  switch (problem.dtype) {
    case DType::kF32:
      return Launch<GemmTypes<float, float, float>>(problem, operands, plan, stream);
    case DType::kF64:
      return Launch<GemmTypes<double, double, double>>(problem, operands, plan, stream);
    default:
      return WithHalfGemmTypes(
          problem, [&]<typename Types>(Types) { return Launch<Types>(problem, operands, plan, stream); });
  }
}

}  // namespace warpline
