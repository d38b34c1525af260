#include <cmath>

#include "kernels/bench/experiments/pipeline_kernels.h"
#include "kernels/launch_grids.h"

namespace warpline::bench {
namespace {

constexpr int kThreads = 256;
// x becomes 1 / 2 - x and x again: results stay as different as inputs, or misplaced chunks would not show.
constexpr float kFactor = -1.0f, kAddend = 0.5f;

__global__ void __launch_bounds__(kThreads)
    IterateElements(const float* __restrict__ in, float* __restrict__ out, std::int64_t count, int steps) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  float x = in[i];
  for (int step = 0; step < steps; ++step) x = fmaf(x, kFactor, kAddend);
  out[i] = x;
}

__global__ void Tiny(float* word) { *word = 1; }

__global__ void Count(unsigned* word) { ++*word; }

// The tile of a CTA is kSide x kSide of the input, which is rows x columns.
template <int kSide>
__global__ void __launch_bounds__(kThreads) PaddedTile(const float* __restrict__ in, float* __restrict__ out,
                                                       std::int64_t rows, std::int64_t columns) {
  constexpr int kRowsPerPass = kThreads / kSide;
  __shared__ float tile[kSide][kSide + 1];
  const int x = threadIdx.x % kSide, y = threadIdx.x / kSide;
  const std::int64_t tiles_x = columns / kSide;
  const std::int64_t x0 = blockIdx.x % tiles_x * kSide, y0 = blockIdx.x / tiles_x * kSide;
#pragma unroll
  for (int j = 0; j < kSide; j += kRowsPerPass) tile[y + j][x] = in[(y0 + y + j) * columns + x0 + x];
  __syncthreads();
#pragma unroll
  for (int j = 0; j < kSide; j += kRowsPerPass) out[(x0 + y + j) * rows + y0 + x] = tile[x][y + j];
}

using TileKernel = void (*)(const float*, float*, std::int64_t, std::int64_t);
TileKernel TileOf(int side) { return side == 64 ? &PaddedTile<64> : &PaddedTile<32>; }

__global__ void CopyElements(const float* __restrict__ in, float* __restrict__ out, std::int64_t count) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) out[i] = in[i];
}

// The grid just fills the device, so that its threads walk over the buffers together.
template <bool kBeside>
__global__ void __launch_bounds__(kThreads)
    SumWords(const std::uint32_t* __restrict__ data, std::int64_t count,
             const std::uint32_t* __restrict__ hot, std::int64_t hot_count, unsigned* sum) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kThreads;
  std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  std::int64_t h = 0, hot_step = 0;
  if constexpr (kBeside) h = i % hot_count, hot_step = step % hot_count;
  unsigned mine = 0;
  for (; i < count; i += step) {
    mine += data[i];
    if constexpr (kBeside) {
      mine += hot[h];
      h += hot_step;
      if (h >= hot_count) h -= hot_count;
    }
  }
  for (int offset = 16; offset > 0; offset /= 2) mine += __shfl_down_sync(0xffffffff, mine, offset);
  if (threadIdx.x % 32 == 0) atomicAdd(sum, mine);
}

unsigned FullGrid(int multiprocessors) { return static_cast<unsigned>(multiprocessors) * (2048 / kThreads); }

}  // namespace

cudaError_t LaunchIterate(const float* in, float* out, std::int64_t count, int steps, cudaStream_t stream) {
  const std::int64_t blocks = CeilDiv(count, kThreads);
  if (blocks > kMaxGridX) return cudaErrorNotSupported;
  IterateElements<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(in, out, count, steps);
  return cudaGetLastError();
}

float Iterate(float x, int steps) {
  for (int step = 0; step < steps; ++step) x = std::fma(x, kFactor, kAddend);
  return x;
}

cudaError_t LaunchTiny(float* word, cudaStream_t stream) {
  Tiny<<<1, 1, 0, stream>>>(word);
  return cudaGetLastError();
}

cudaError_t LaunchCount(unsigned* word, cudaStream_t stream) {
  Count<<<1, 1, 0, stream>>>(word);
  return cudaGetLastError();
}

cudaError_t LaunchPaddedTile(int side, const float* in, float* out, std::int64_t rows, std::int64_t columns,
                             cudaStream_t stream) {
  const std::int64_t blocks = rows / side * (columns / side);
  if (rows % side != 0 || columns % side != 0 || blocks > kMaxGridX) return cudaErrorNotSupported;
  TileOf(side)<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(in, out, rows, columns);
  return cudaGetLastError();
}

cudaError_t SetCarveout(int side, int percent) {
  return cudaFuncSetAttribute(TileOf(side), cudaFuncAttributePreferredSharedMemoryCarveout, percent);
}

cudaError_t BlocksPerMultiprocessor(int side, int* blocks) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, TileOf(side), kThreads, 0);
}

cudaError_t LaunchCopyBlocks(int threads, const float* in, float* out, std::int64_t count,
                             cudaStream_t stream) {
  const std::int64_t blocks = CeilDiv(count, threads);
  if (blocks > kMaxGridX) return cudaErrorNotSupported;
  CopyElements<<<static_cast<unsigned>(blocks), threads, 0, stream>>>(in, out, count);
  return cudaGetLastError();
}

cudaError_t CopyBlocksPerMultiprocessor(int threads, int* blocks) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, CopyElements, threads, 0);
}

cudaError_t AdviseCopyBlocks(int* min_grid, int* threads) {
  return cudaOccupancyMaxPotentialBlockSize(min_grid, threads, CopyElements, 0, 0);
}

cudaError_t LaunchSumBeside(const std::uint32_t* stream_data, std::int64_t count, const std::uint32_t* hot,
                            std::int64_t hot_count, unsigned* sum, int multiprocessors, cudaStream_t stream) {
  SumWords<true><<<FullGrid(multiprocessors), kThreads, 0, stream>>>(stream_data, count, hot, hot_count, sum);
  return cudaGetLastError();
}

cudaError_t LaunchSumWords(const std::uint32_t* data, std::int64_t count, unsigned* sum, int multiprocessors,
                           cudaStream_t stream) {
  SumWords<false><<<FullGrid(multiprocessors), kThreads, 0, stream>>>(data, count, nullptr, 0, sum);
  return cudaGetLastError();
}

}  // namespace warpline::bench
