// Baselines that the ladders are compared with: copies, and reading alone. Only the benchmark uses these
// kernels.
#ifndef WARPLINE_KERNELS_BENCH_HARNESS_BASELINES_H_
#define WARPLINE_KERNELS_BENCH_HARNESS_BASELINES_H_

#include <cuda_runtime_api.h>
#include <vector_types.h>

#include <cstddef>

namespace warpline::bench {

// Addresses are aligned to 16 bytes. cudaErrorNotSupported if `bytes` is not a multiple of 16.

// Registers only, 16 bytes a thread and access.
cudaError_t LaunchCopy(const void* in, void* out, std::size_t bytes, cudaStream_t stream);
// The same, but through shared memory and a barrier, as a tile of a transposition goes.
cudaError_t LaunchCopyShared(const void* in, void* out, std::size_t bytes, cudaStream_t stream);
inline constexpr uint4 kReadSinkWord = {0x1badb002, 0x2badb002, 0x3badb002, 0x4badb002};
// Reads everything and writes nothing, though the compiler cannot know: only if a thread's words together, by
// exclusive or, are kReadSinkWord. `sink` has 16 bytes.
cudaError_t LaunchRead(const void* in, std::size_t bytes, void* sink, cudaStream_t stream);

}  // namespace warpline::bench

#endif  // WARPLINE_KERNELS_BENCH_HARNESS_BASELINES_H_
