#include <algorithm>

#include "kernels/bench/harness/reference.h"
#include "kernels/gemm/epilogue.h"
#include "kernels/gpu/real.cuh"
#include "kernels/launch_grids.h"
#include "kernels/map/packs/arithmetic.h"
#include "kernels/map/packs/walk.h"
#include "kernels/reduce/canonical.h"
#include "kernels/reduce/wide.h"
#include "kernels/transpose/strided_copy.h"

namespace warpline::bench {
namespace {

constexpr int kThreads = 256;
constexpr int kTile = 16;
// Threads that share the elements of a reduction: enough to fill any GPU of today.
constexpr std::int64_t kReduceThreadsInAll = std::int64_t{1} << 20;

__device__ std::int64_t GlobalIndex(std::int64_t first_block) {
  return (first_block + blockIdx.x) * kThreads + threadIdx.x;
}

// `walk` goes over the elements in the order of the output.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    TransposeElements(const T* in, T* out, const __grid_constant__ StridedCopy walk, std::int64_t count,
                      std::int64_t first_block) {
  const std::int64_t i = GlobalIndex(first_block);
  if (i >= count) return;
  std::int64_t index = i, from = 0;
  for (int axis = walk.rank - 1; axis >= 0; --axis) {
    from += index % walk.dims[axis] * walk.in_strides[axis];
    index /= walk.dims[axis];
  }
  out[i] = in[from];
}

// One thread an element of the result; a CTA one kTile x kTile tile of one matrix of it. Tiles are numbered
// along rows.
__global__ void __launch_bounds__(kTile* kTile)
    Multiply(const void* a, const void* b, const void* bias, DType bias_dtype, double* out,
             const __grid_constant__ GemmProblem p) {
  __shared__ double tile_a[kTile][kTile + 1], tile_b[kTile][kTile + 1];
  const int x = threadIdx.x % kTile, y = threadIdx.x / kTile;
  const std::int64_t tiles_n = (p.n + kTile - 1) / kTile, tiles_m = (p.m + kTile - 1) / kTile;
  const std::int64_t matrix = blockIdx.x / (tiles_n * tiles_m), tile = blockIdx.x % (tiles_n * tiles_m);
  const std::int64_t row = tile / tiles_n * kTile + y, column = tile % tiles_n * kTile + x;
  const GemmBatch::Matrices at = p.batch.At(matrix);
  const std::int64_t base_a = at.a * (p.trans_a ? p.k : p.m) * p.lda;
  const std::int64_t base_b = at.b * (p.trans_b ? p.n : p.k) * p.ldb;
  double sum = 0;
  for (std::int64_t k0 = 0; k0 < p.k; k0 += kTile) {
    const std::int64_t in_a = p.trans_a ? (k0 + x) * p.lda + row : row * p.lda + k0 + x;
    const std::int64_t in_b = p.trans_b ? column * p.ldb + k0 + y : (k0 + y) * p.ldb + column;
    tile_a[y][x] = row < p.m && k0 + x < p.k ? LoadReal<double>(p.dtype, a, base_a + in_a) : 0;
    tile_b[y][x] = column < p.n && k0 + y < p.k ? LoadReal<double>(p.dtype, b, base_b + in_b) : 0;
    __syncthreads();
    for (int i = 0; i < kTile; ++i) sum = fma(tile_a[y][i], tile_b[i][x], sum);
    __syncthreads();
  }
  if (row >= p.m || column >= p.n) return;
  if (p.has_bias) sum += LoadReal<double>(bias_dtype, bias, column);
  out[(matrix * p.m + row) * p.n + column] = Activate(p.activation, sum);
}

// Thread t takes every parts-th element of result t / parts, or of result t % results where neighbouring
// results are neighbours in memory.
template <typename R>
__global__ void __launch_bounds__(kThreads)
    ReduceParts(const void* x, DType dtype, typename R::Acc* partials,
                const __grid_constant__ CanonicalReduce reduce, std::int64_t parts, bool by_rows) {
  const std::int64_t t = GlobalIndex(0);
  if (t >= reduce.results * parts) return;
  const std::int64_t result = by_rows ? t / parts : t % reduce.results;
  const std::int64_t part = by_rows ? t % parts : t / reduce.results;
  const std::int64_t base = reduce.kept.Offset(result);
  typename R::Acc acc = R::Identity();
  for (std::int64_t r = part; r < reduce.reduced_count; r += parts) {
    R::Add(acc, LoadReal<typename R::Value>(dtype, x, base + reduce.reduced.Offset(r)), r);
  }
  partials[result * parts + part] = acc;
}

template <typename R>
__global__ void __launch_bounds__(kThreads)
    CombineParts(const typename R::Acc* partials, double* out, const __grid_constant__ ReduceFinish finish,
                 std::int64_t results, std::int64_t parts) {
  const std::int64_t result = GlobalIndex(0);
  if (result >= results) return;
  typename R::Acc acc = R::Identity();
  for (std::int64_t part = 0; part < parts; ++part) acc = R::Combine(acc, partials[result * parts + part]);
  R::Finish(acc, finish, [&](auto value) { out[result] = static_cast<double>(value); });
}

template <typename V>
__global__ void __launch_bounds__(kThreads)
    ComputeElements(const void* x, const void* y, const StepScalars* scalars, double* out, PairOp op,
                    DType dtype, DType out_dtype, const __grid_constant__ PairWalk walk,
                    std::int64_t first_block) {
  const std::int64_t i = GlobalIndex(first_block);
  if (i >= walk.count) return;
  const PairSource source = walk.At(i);
  V value = LoadReal<V>(dtype, x, source.x);
  if (op == PairOp::kAdd) value += LoadReal<V>(dtype, y, source.y);
  if (op == PairOp::kScale) value *= FactorOf<V>(*scalars);
  alignas(16) unsigned char rounded[16];
  StoreReal(out_dtype, rounded, 0, value);
  out[i] = LoadReal<double>(out_dtype, rounded, 0);
}

__device__ void Report(Differences* differences, std::int64_t index) {
  atomicAdd(&differences->count, 1ull);
  atomicMin(&differences->first, static_cast<unsigned long long>(index));
}

__global__ void __launch_bounds__(kThreads)
    CompareWords(const uint4* got, const uint4* want, std::int64_t count, Differences* differences,
                 std::int64_t first_block) {
  const std::int64_t i = GlobalIndex(first_block);
  if (i >= count) return;
  const uint4 g = got[i], w = want[i];
  if (g.x != w.x || g.y != w.y || g.z != w.z || g.w != w.w) Report(differences, i * 16);
}

__global__ void CompareTail(const unsigned char* got, const unsigned char* want, std::size_t begin,
                            std::size_t end, Differences* differences) {
  for (std::size_t i = begin; i < end; ++i) {
    if (got[i] != want[i]) Report(differences, static_cast<std::int64_t>(i));
  }
}

__global__ void __launch_bounds__(kThreads)
    CompareElements(const void* got, DType dtype, const double* want, std::int64_t count, double absolute,
                    double relative, Differences* differences, std::int64_t first_block) {
  const std::int64_t i = GlobalIndex(first_block);
  if (i >= count) return;
  const double g = LoadReal<double>(dtype, got, i), w = want[i];
  if (isnan(w) ? isnan(g) : fabs(g - w) <= absolute + relative * fabs(w)) return;
  alignas(16) unsigned char rounded[16];
  StoreReal(dtype, rounded, 0, w);
  if (isinf(g) && LoadReal<double>(dtype, rounded, 0) == g) return;
  Report(differences, i);
}

// Threads that share the elements of a result.
std::int64_t PartsOf(const CanonicalReduce& reduce) {
  return std::clamp<std::int64_t>(kReduceThreadsInAll / reduce.results, 1, reduce.reduced_count);
}

}  // namespace

cudaError_t ReferenceTranspose(const TransposeProblem& problem, const void* in, void* out,
                               cudaStream_t stream) {
  const Strides strides = RowMajorStrides(problem.shape, problem.row_stride);
  StridedCopy walk;
  for (int i = 0; i < problem.shape.rank; ++i) {
    walk.Append(problem.shape[problem.perm[i]], strides[problem.perm[i]], 0);
  }
  const auto launch = [&](auto element) {
    using T = decltype(element);
    return LaunchGrids(CeilDiv(walk.Count(), kThreads), [&](std::int64_t first, unsigned grid) {
      TransposeElements<<<grid, kThreads, 0, stream>>>(static_cast<const T*>(in), static_cast<T*>(out), walk,
                                                       walk.Count(), first);
    });
  };
  switch (SizeOf(problem.dtype)) {
    case 1:
      return launch(std::uint8_t{});
    case 2:
      return launch(std::uint16_t{});
    case 4:
      return launch(std::uint32_t{});
    case 8:
      return launch(std::uint64_t{});
    case 16:
      return launch(uint4{});
    default:
      return cudaErrorNotSupported;
  }
}

cudaError_t ReferenceGemm(const GemmProblem& problem, const Operands& operands, double* out,
                          cudaStream_t stream) {
  const std::int64_t tiles = CeilDiv(problem.m, kTile) * CeilDiv(problem.n, kTile) * problem.batch.Count();
  if (tiles > kMaxGridX || problem.has_c) return cudaErrorNotSupported;
  const void* bias = problem.has_bias ? operands.in[problem.BiasIndex()] : nullptr;
  Multiply<<<static_cast<unsigned>(tiles), kTile * kTile, 0, stream>>>(operands.in[0], operands.in[1], bias,
                                                                       problem.OutDType(), out, problem);
  return cudaGetLastError();
}

std::size_t ReferenceScratchBytes(const ReduceProblem& problem) {
  constexpr std::size_t kMaxAccBytes = 32;
  return static_cast<std::size_t>(PartsOf(Canonicalize(problem)) * problem.OutputShape(false).Count()) *
         kMaxAccBytes;
}

cudaError_t ReferenceReduce(const ReduceProblem& problem, const Operands& operands, double* out,
                            void* scratch, cudaStream_t stream) {
  const CanonicalReduce reduce = Canonicalize(problem);
  const std::int64_t parts = PartsOf(reduce), blocks = CeilDiv(reduce.results * parts, kThreads);
  if (blocks > kMaxGridX) return cudaErrorNotSupported;
  return VisitWideMonoid(problem, [&]<typename R>(std::type_identity<R>) {
    auto* partials = static_cast<typename R::Acc*>(scratch);
    ReduceParts<R><<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(
        operands.in[0], problem.dtype, partials, reduce, parts, reduce.InnermostReduced());
    CombineParts<R><<<static_cast<unsigned>(CeilDiv(reduce.results, kThreads)), kThreads, 0, stream>>>(
        partials, out, FinishOf(problem), reduce.results, parts);
    return cudaGetLastError();
  });
}

cudaError_t ReferencePair(const PairMap& problem, const Operands& operands, double* out,
                          cudaStream_t stream) {
  const PairWalk walk = PairWalk::Of(problem);
  return VisitArithmetic(problem, [&]<typename V>(std::type_identity<V>) {
    return LaunchGrids(CeilDiv(walk.count, kThreads), [&](std::int64_t first, unsigned grid) {
      ComputeElements<V><<<grid, kThreads, 0, stream>>>(operands.in[0], operands.in[1], operands.scalars, out,
                                                        problem.op, problem.dtype, problem.out_dtype, walk,
                                                        first);
    });
  });
}

cudaError_t CompareBytes(const void* got, const void* want, std::size_t bytes, Differences* device,
                         cudaStream_t stream) {
  const auto words = static_cast<std::int64_t>(bytes / 16);
  if (bytes % 16 != 0) {
    CompareTail<<<1, 1, 0, stream>>>(static_cast<const unsigned char*>(got),
                                     static_cast<const unsigned char*>(want), bytes / 16 * 16, bytes, device);
  }
  return LaunchGrids(CeilDiv(words, kThreads), [&](std::int64_t first, unsigned grid) {
    CompareWords<<<grid, kThreads, 0, stream>>>(static_cast<const uint4*>(got),
                                                static_cast<const uint4*>(want), words, device, first);
  });
}

cudaError_t CompareNumbers(const void* got, DType dtype, const double* want, std::int64_t count,
                           double absolute, double relative, Differences* device, cudaStream_t stream) {
  return LaunchGrids(CeilDiv(count, kThreads), [&](std::int64_t first, unsigned grid) {
    CompareElements<<<grid, kThreads, 0, stream>>>(got, dtype, want, count, absolute, relative, device,
                                                   first);
  });
}

}  // namespace warpline::bench
