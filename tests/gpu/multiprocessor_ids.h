// On which multiprocessors the kernels of a stream run.
#ifndef WARPLINE_TESTS_GPU_MULTIPROCESSOR_IDS_H_
#define WARPLINE_TESTS_GPU_MULTIPROCESSOR_IDS_H_

#include <cuda_runtime_api.h>

namespace warpline {

// Launches `blocks` blocks, each of which keeps its multiprocessor busy for a moment and writes its number.
void LaunchMultiprocessorIds(unsigned* ids, unsigned blocks, cudaStream_t stream);

}  // namespace warpline

#endif  // WARPLINE_TESTS_GPU_MULTIPROCESSOR_IDS_H_
