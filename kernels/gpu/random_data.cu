#include "kernels/gpu/random_data.h"
#include "kernels/gpu/real.cuh"
#include "kernels/launch_grids.h"

namespace warpline::gpu {
namespace {

constexpr int kThreads = 256;

// The mixer of Steele, Lea and Flood: it turns neighbouring numbers into unrelated ones.
__device__ std::uint64_t Mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

__device__ std::int64_t GlobalIndex(std::int64_t first_block) {
  return (first_block + blockIdx.x) * kThreads + threadIdx.x;
}

// The Box-Muller transform of two uniform numbers, of which the first is not 0.
__device__ float Normal(std::uint64_t bits) {
  const float u = (static_cast<float>(bits >> 40) + 1) * 0x1p-24f;
  const float v = static_cast<float>(bits & 0xffffff) * 0x1p-24f;
  return sqrtf(-2 * logf(u)) * cospif(2 * v);
}

__global__ void __launch_bounds__(kThreads)
    FillNormals(void* data, DType dtype, std::int64_t count, float scale, std::uint64_t seed,
                std::int64_t first_block) {
  const std::int64_t i = GlobalIndex(first_block);
  if (i >= count) return;
  const float normal = Normal(Mix(seed ^ static_cast<std::uint64_t>(i)));
  const float scaled = scale == 1 ? normal : rintf(scale * normal);
  StoreReal(dtype, data, i, dtype == DType::kBool ? fmaxf(scaled, 0) : scaled);
}

__global__ void __launch_bounds__(kThreads)
    FillWords(std::uint64_t* words, std::int64_t count, std::uint64_t seed, std::int64_t first_block) {
  const std::int64_t i = GlobalIndex(first_block);
  if (i < count) words[i] = Mix(seed ^ static_cast<std::uint64_t>(i));
}

}  // namespace

cudaError_t FillNumbers(void* data, DType dtype, std::int64_t count, std::uint64_t seed,
                        cudaStream_t stream) {
  if (IsComplex(dtype)) return FillNumbers(data, PartOf(dtype), 2 * count, seed, stream);
  if (!IsReal(dtype)) return cudaErrorNotSupported;
  const float scale = IsFloat(dtype) ? 1 : 50;
  return LaunchGrids(CeilDiv(count, kThreads), [&](std::int64_t first, unsigned grid) {
    FillNormals<<<grid, kThreads, 0, stream>>>(data, dtype, count, scale, seed, first);
  });
}

cudaError_t FillBits(void* data, std::size_t bytes, std::uint64_t seed, cudaStream_t stream) {
  const auto words = static_cast<std::int64_t>(bytes / 8);
  if (bytes % 8 != 0) {
    auto* tail = static_cast<std::byte*>(data) + words * 8;
    if (cudaError_t error = cudaMemsetAsync(tail, 0x5a, bytes % 8, stream); error != cudaSuccess)
      return error;
  }
  return LaunchGrids(CeilDiv(words, kThreads), [&](std::int64_t first, unsigned grid) {
    FillWords<<<grid, kThreads, 0, stream>>>(static_cast<std::uint64_t*>(data), words, seed, first);
  });
}

}  // namespace warpline::gpu
