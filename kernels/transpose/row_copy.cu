// Variant `rows`, for transpositions that keep the innermost axis innermost: rows are copied unchanged, so
// there is nothing to transpose within a tile, and no shared memory is needed. Each thread stores a 16-byte
// vector of the output, independent of the row length. Its elements come from one row, or from the end of one
// row and the beginning of the next.
//
// Limit: device memory, for rows of at least a few sectors.
#include "kernels/gpu/run_walk.cuh"
#include "kernels/launch_grids.h"
#include "kernels/transpose/kernels.h"

namespace warpline {
namespace {

// One vector per thread, as in elementwise steps. Four vectors took 5 % longer
// (docs/benchmarks/history.md#2026-11-25-drawn-problems): with one, the device works along the output, as
// CTAs do.
constexpr int kThreads = 256;
constexpr int kVectorBytes = 16;

template <typename T>
__global__ void __launch_bounds__(kThreads)
    CopyRows(const T* __restrict__ in, T* __restrict__ out, const __grid_constant__ AxisWalk walk,
             std::uint32_t count) {
  constexpr int kSize = kVectorBytes / static_cast<int>(sizeof(T));
  const std::uint32_t index = (blockIdx.x * kThreads + threadIdx.x) * kSize;
  if (index >= count) return;
  const RawVector<kVectorBytes> vector = LoadRuns<T, kSize>(in, walk, index, count - index);
  if (count - index >= kSize) {
    *reinterpret_cast<RawVector<kVectorBytes>*>(out + index) = vector;
  } else if constexpr (kSize > 1) {
#pragma unroll
    for (int i = 0; i < kSize; ++i) {
      if (i < count - index) out[index + i] = Element<T>(vector, i);
    }
  }
}

template <typename T>
cudaError_t Launch(const CanonicalTranspose& transpose, const void* in, void* out, cudaStream_t stream) {
  AxisWalk walk;
  std::int64_t count = 1;
  for (int i = transpose.rank - 1; i >= 0; --i) {
    const int axis = transpose.perm[i];
    walk.Append(transpose.dims[axis], transpose.in_strides[axis]);
    count *= transpose.dims[axis];
  }
  const auto blocks =
      static_cast<unsigned>(CeilDiv(count * static_cast<std::int64_t>(sizeof(T)), kVectorBytes * kThreads));
  CopyRows<T><<<blocks, kThreads, 0, stream>>>(static_cast<const T*>(in), static_cast<T*>(out), walk,
                                               static_cast<std::uint32_t>(count));
  return cudaGetLastError();
}

}  // namespace

cudaError_t LaunchRowCopy(const CanonicalTranspose& transpose, std::size_t element_bytes, const void* in,
                          void* out, cudaStream_t stream) {
  switch (element_bytes) {
    case 1:
      return Launch<std::uint8_t>(transpose, in, out, stream);
    case 2:
      return Launch<std::uint16_t>(transpose, in, out, stream);
    case 4:
      return Launch<std::uint32_t>(transpose, in, out, stream);
    case 8:
      return Launch<std::uint64_t>(transpose, in, out, stream);
    case 16:
      return Launch<uint4>(transpose, in, out, stream);
    default:
      return cudaErrorNotSupported;
  }
}

}  // namespace warpline
