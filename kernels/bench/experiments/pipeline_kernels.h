// Kernels of the pipeline experiments.
#ifndef WARPLINE_KERNELS_BENCH_EXPERIMENTS_PIPELINE_KERNELS_H_
#define WARPLINE_KERNELS_BENCH_EXPERIMENTS_PIPELINE_KERNELS_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace warpline::bench {

// out[i] = x after `steps` times x = fma(x, 0.75, 0.5): as long as one likes, and exactly what the host
// computes by std::fma.
cudaError_t LaunchIterate(const float* in, float* out, std::int64_t count, int steps, cudaStream_t stream);
float Iterate(float x, int steps);

// Next to nothing; writes one word.
cudaError_t LaunchTiny(float* word, cudaStream_t stream);

// The same, adding one to it, so that it tells how many there were.
cudaError_t LaunchCount(unsigned* word, cudaStream_t stream);

// The transposition through a padded tile of `side` (32 or 64) squared f32 elements by 256 threads. Sizes are
// multiples of the side.
cudaError_t LaunchPaddedTile(int side, const float* in, float* out, std::int64_t rows, std::int64_t columns,
                             cudaStream_t stream);
// How much of the L1 the kernel would like as shared memory, per cent; and what that makes of it.
cudaError_t SetCarveout(int side, int percent);
cudaError_t BlocksPerMultiprocessor(int side, int* blocks);

// A copy of f32 elements, one a thread, in blocks of any size.
cudaError_t LaunchCopyBlocks(int threads, const float* in, float* out, std::int64_t count,
                             cudaStream_t stream);
cudaError_t CopyBlocksPerMultiprocessor(int threads, int* blocks);
// Returns what cudaOccupancyMaxPotentialBlockSize advises for the copy kernel.
cudaError_t AdviseCopyBlocks(int* min_grid, int* threads);

// Adds up all words of `stream_data` and, beside each, one of the hot buffer, walking over it again and
// again. *sum, in device memory, is zero to begin with; it wraps. hot_count divides count.
cudaError_t LaunchSumBeside(const std::uint32_t* stream_data, std::int64_t count, const std::uint32_t* hot,
                            std::int64_t hot_count, unsigned* sum, int multiprocessors, cudaStream_t stream);
// The same sum of one buffer.
cudaError_t LaunchSumWords(const std::uint32_t* data, std::int64_t count, unsigned* sum, int multiprocessors,
                           cudaStream_t stream);

}  // namespace warpline::bench

#endif  // WARPLINE_KERNELS_BENCH_EXPERIMENTS_PIPELINE_KERNELS_H_
