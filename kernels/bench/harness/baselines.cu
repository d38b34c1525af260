#include <cstdint>

#include "kernels/bench/harness/baselines.h"
#include "kernels/launch_grids.h"

namespace warpline::bench {
namespace {

constexpr int kThreads = 256;
// Loads that a thread has in flight: with 2048 threads on a multiprocessor, four keep the memory busy.
constexpr int kUnroll = 4;
constexpr std::int64_t kPerBlock = std::int64_t{kThreads} * kUnroll;

__global__ void __launch_bounds__(kThreads) Copy(const uint4* __restrict__ in, uint4* __restrict__ out,
                                                 std::int64_t count, std::int64_t first_block) {
  const std::int64_t begin = (first_block + blockIdx.x) * kPerBlock + threadIdx.x;
  uint4 words[kUnroll];
#pragma unroll
  for (int i = 0; i < kUnroll; ++i) {
    if (begin + i * kThreads < count) words[i] = in[begin + i * kThreads];
  }
#pragma unroll
  for (int i = 0; i < kUnroll; ++i) {
    if (begin + i * kThreads < count) out[begin + i * kThreads] = words[i];
  }
}

// Each thread stores what another warp loaded, so that the way through shared memory cannot be optimised
// away.
__global__ void __launch_bounds__(kThreads) CopyShared(const uint4* __restrict__ in, uint4* __restrict__ out,
                                                       std::int64_t count, std::int64_t first_block) {
  __shared__ uint4 tile[kPerBlock];
  const std::int64_t begin = (first_block + blockIdx.x) * kPerBlock;
  const int from = threadIdx.x, to = threadIdx.x ^ (kThreads / 2);
#pragma unroll
  for (int i = 0; i < kUnroll; ++i) {
    const int at = i * kThreads + from;
    if (begin + at < count) tile[at] = in[begin + at];
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kUnroll; ++i) {
    const int at = i * kThreads + to;
    if (begin + at < count) out[begin + at] = tile[at];
  }
}

__global__ void __launch_bounds__(kThreads)
    Read(const uint4* __restrict__ in, std::int64_t count, uint4* sink, std::int64_t first_block) {
  const std::int64_t begin = (first_block + blockIdx.x) * kPerBlock + threadIdx.x;
  uint4 all = {0, 0, 0, 0};
#pragma unroll
  for (int i = 0; i < kUnroll; ++i) {
    if (begin + i * kThreads < count) {
      const uint4 word = in[begin + i * kThreads];
      all = {all.x ^ word.x, all.y ^ word.y, all.z ^ word.z, all.w ^ word.w};
    }
  }
  // Never of random data, but the compiler does not know.
  constexpr uint4 kSink = kReadSinkWord;
  if (all.x == kSink.x && all.y == kSink.y && all.z == kSink.z && all.w == kSink.w) *sink = all;
}

template <typename Launch>
cudaError_t LaunchWords(std::size_t bytes, Launch launch) {
  if (bytes % 16 != 0) return cudaErrorNotSupported;
  const auto count = static_cast<std::int64_t>(bytes / 16);
  return LaunchGrids(CeilDiv(count, kPerBlock),
                     [&](std::int64_t first, unsigned grid) { launch(count, first, grid); });
}

}  // namespace

cudaError_t LaunchCopy(const void* in, void* out, std::size_t bytes, cudaStream_t stream) {
  return LaunchWords(bytes, [&](std::int64_t count, std::int64_t first, unsigned grid) {
    Copy<<<grid, kThreads, 0, stream>>>(static_cast<const uint4*>(in), static_cast<uint4*>(out), count,
                                        first);
  });
}

cudaError_t LaunchCopyShared(const void* in, void* out, std::size_t bytes, cudaStream_t stream) {
  return LaunchWords(bytes, [&](std::int64_t count, std::int64_t first, unsigned grid) {
    CopyShared<<<grid, kThreads, 0, stream>>>(static_cast<const uint4*>(in), static_cast<uint4*>(out), count,
                                              first);
  });
}

cudaError_t LaunchRead(const void* in, std::size_t bytes, void* sink, cudaStream_t stream) {
  return LaunchWords(bytes, [&](std::int64_t count, std::int64_t first, unsigned grid) {
    Read<<<grid, kThreads, 0, stream>>>(static_cast<const uint4*>(in), count, static_cast<uint4*>(sink),
                                        first);
  });
}

}  // namespace warpline::bench
