#include "kernels/gpu/count_different.h"
#include "kernels/gpu/real.cuh"
#include "kernels/launch_grids.h"

namespace warpline::gpu {
namespace {

constexpr int kThreads = 256;

__device__ bool Differ(double x, double y, double absolute, double relative) {
  if (x == y || (isnan(x) && isnan(y))) return false;
  return isinf(x) || isinf(y) || !(fabs(x - y) <= absolute + relative * fabs(y));
}

// 64-bit integers beyond 2^53 are compared after rounding to double.
__global__ void __launch_bounds__(kThreads)
    CountDifferentNumbers(const void* x, const void* y, DType dtype, std::int64_t count, double absolute,
                          double relative, unsigned long long* different, std::int64_t first_block) {
  const std::int64_t i = (first_block + blockIdx.x) * kThreads + threadIdx.x;
  const bool differ =
      i < count && Differ(LoadReal<double>(dtype, x, i), LoadReal<double>(dtype, y, i), absolute, relative);
  const int found = __syncthreads_count(differ ? 1 : 0);
  if (threadIdx.x == 0 && found > 0) atomicAdd(different, static_cast<unsigned long long>(found));
}

}  // namespace

cudaError_t CountDifferent(const void* x, const void* y, DType dtype, std::int64_t count, double absolute,
                           double relative, unsigned long long* different, cudaStream_t stream) {
  if (IsComplex(dtype)) {
    dtype = PartOf(dtype);
    count *= 2;
  } else if (!IsReal(dtype)) {
    count *= static_cast<std::int64_t>(SizeOf(dtype));
    dtype = DType::kU8;
    absolute = relative = 0;
  }
  return LaunchGrids(CeilDiv(count, kThreads), [&](std::int64_t first, unsigned grid) {
    CountDifferentNumbers<<<grid, kThreads, 0, stream>>>(x, y, dtype, count, absolute, relative, different,
                                                         first);
  });
}

}  // namespace warpline::gpu
