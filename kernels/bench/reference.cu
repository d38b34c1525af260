#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>

#include "kernels/bench/reference.h"
#include "kernels/launch_grids.h"

namespace warpline::bench {
namespace {

constexpr int kThreads = 256;
constexpr int kTile = 16;
// Threads that share the elements of a sum: enough to fill any GPU of today.
constexpr std::int64_t kSumThreads = std::int64_t{1} << 20;

__device__ std::int64_t GlobalIndex(std::int64_t first_block) {
  return (first_block + blockIdx.x) * kThreads + threadIdx.x;
}

template <typename T>
__device__ double ToDouble(T x) {
  if constexpr (sizeof(T) == 2) {
    return static_cast<double>(static_cast<float>(x));
  } else {
    return static_cast<double>(x);
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    TransposeElements(const T* in, T* out, std::int64_t rows, std::int64_t columns,
                      std::int64_t first_block) {
  const std::int64_t i = GlobalIndex(first_block);  // in the order of the output
  if (i < rows * columns) out[i] = in[i % rows * columns + i / rows];
}

// One thread an element of the result; a CTA one kTile x kTile tile of it. Tiles are numbered along rows.
template <typename T>
__global__ void __launch_bounds__(kTile* kTile)
    Multiply(const T* a, const T* b, double* out, std::int64_t m, std::int64_t n, std::int64_t k) {
  __shared__ T tile_a[kTile][kTile], tile_b[kTile][kTile];
  const int x = threadIdx.x % kTile, y = threadIdx.x / kTile;
  const std::int64_t tiles_n = (n + kTile - 1) / kTile;
  const std::int64_t row = blockIdx.x / tiles_n * kTile + y, column = blockIdx.x % tiles_n * kTile + x;
  double sum = 0;
  for (std::int64_t k0 = 0; k0 < k; k0 += kTile) {
    tile_a[y][x] = row < m && k0 + x < k ? a[row * k + k0 + x] : static_cast<T>(0.0f);
    tile_b[y][x] = column < n && k0 + y < k ? b[(k0 + y) * n + column] : static_cast<T>(0.0f);
    __syncthreads();
    for (int i = 0; i < kTile; ++i) sum = fma(ToDouble(tile_a[y][i]), ToDouble(tile_b[i][x]), sum);
    __syncthreads();
  }
  if (row < m && column < n) out[row * n + column] = sum;
}

// Element (o, r, i) of the outer x reduced x inner array goes into result (o, i). Neighbouring threads take
// neighbouring elements along whichever axis is innermost; `out` is zero to begin with.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    AddUp(const T* x, double* out, std::int64_t outer, std::int64_t reduced, std::int64_t inner,
          std::int64_t parts) {
  const std::int64_t t = GlobalIndex(0);
  if (t >= outer * inner * parts) return;
  std::int64_t o, i, part;
  if (inner == 1) {
    o = t / parts, i = 0, part = t % parts;
  } else {
    i = t % inner, part = t / inner % parts, o = t / inner / parts;
  }
  double sum = 0;
  for (std::int64_t r = part; r < reduced; r += parts) sum += ToDouble(x[(o * reduced + r) * inner + i]);
  atomicAdd(&out[o * inner + i], sum);
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

template <typename T>
__global__ void __launch_bounds__(kThreads)
    CompareElements(const T* got, const double* want, std::int64_t count, double absolute, double relative,
                    Differences* differences, std::int64_t first_block) {
  const std::int64_t i = GlobalIndex(first_block);
  if (i >= count) return;
  const double difference = fabs(ToDouble(got[i]) - want[i]);
  if (!(difference <= absolute + relative * fabs(want[i]))) Report(differences, i);
}

// Calls function(T*) with a null pointer of the element's type.
template <typename Function>
cudaError_t Dispatch(DType dtype, Function function) {
  switch (dtype) {
    case DType::kF16:
      return function(static_cast<__half*>(nullptr));
    case DType::kBF16:
      return function(static_cast<__nv_bfloat16*>(nullptr));
    case DType::kF32:
      return function(static_cast<float*>(nullptr));
    case DType::kF64:
      return function(static_cast<double*>(nullptr));
    default:
      return cudaErrorNotSupported;
  }
}

}  // namespace

cudaError_t ReferenceTranspose(const void* in, void* out, std::int64_t rows, std::int64_t columns,
                               std::size_t element_bytes, cudaStream_t stream) {
  const auto launch = [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    return LaunchGrids(CeilDiv(rows * columns, kThreads), [&](std::int64_t first, unsigned grid) {
      TransposeElements<<<grid, kThreads, 0, stream>>>(static_cast<const T*>(in), static_cast<T*>(out), rows,
                                                       columns, first);
    });
  };
  switch (element_bytes) {
    case 1:
      return launch(static_cast<std::uint8_t*>(nullptr));
    case 2:
      return launch(static_cast<std::uint16_t*>(nullptr));
    case 4:
      return launch(static_cast<std::uint32_t*>(nullptr));
    case 8:
      return launch(static_cast<std::uint64_t*>(nullptr));
    case 16:
      return launch(static_cast<uint4*>(nullptr));
    default:
      return cudaErrorNotSupported;
  }
}

cudaError_t ReferenceGemm(const GemmProblem& problem, const void* a, const void* b, double* out,
                          cudaStream_t stream) {
  const std::int64_t tiles = CeilDiv(problem.m, kTile) * CeilDiv(problem.n, kTile);
  if (tiles > kMaxGridX) return cudaErrorNotSupported;
  return Dispatch(problem.dtype, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    Multiply<<<static_cast<unsigned>(tiles), kTile * kTile, 0, stream>>>(
        static_cast<const T*>(a), static_cast<const T*>(b), out, problem.m, problem.n, problem.k);
    return cudaGetLastError();
  });
}

cudaError_t ReferenceSum(const ReduceProblem& problem, const void* x, double* out, cudaStream_t stream) {
  // To outer x reduced x inner.
  std::int64_t outer = 1, reduced = 1, inner = 1;
  for (int axis = 0; axis < problem.shape.rank; ++axis) {
    if (problem.IsReduced(axis)) {
      reduced *= problem.shape[axis];
    } else if (reduced == 1) {
      outer *= problem.shape[axis];
    } else {
      inner *= problem.shape[axis];
    }
  }
  const std::int64_t results = outer * inner;
  const std::int64_t parts = std::clamp<std::int64_t>(kSumThreads / results, 1, reduced);
  const auto zeroed = cudaMemsetAsync(out, 0, static_cast<std::size_t>(results) * sizeof(double), stream);
  if (zeroed != cudaSuccess) return zeroed;
  const std::int64_t blocks = CeilDiv(results * parts, kThreads);
  if (blocks > kMaxGridX) return cudaErrorNotSupported;
  return Dispatch(problem.dtype, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    AddUp<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(static_cast<const T*>(x), out, outer,
                                                                  reduced, inner, parts);
    return cudaGetLastError();
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
  return Dispatch(dtype, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    return LaunchGrids(CeilDiv(count, kThreads), [&](std::int64_t first, unsigned grid) {
      CompareElements<<<grid, kThreads, 0, stream>>>(static_cast<const T*>(got), want, count, absolute,
                                                     relative, device, first);
    });
  });
}

}  // namespace warpline::bench
