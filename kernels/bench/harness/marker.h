// A kernel that does nothing, to be found in a profiler's list of kernels.
#ifndef WARPLINE_KERNELS_BENCH_HARNESS_MARKER_H_
#define WARPLINE_KERNELS_BENCH_HARNESS_MARKER_H_

#include <cuda_runtime_api.h>

namespace warpline::bench {

// The kernel is called VariantMarker and has `number` blocks.
cudaError_t LaunchVariantMarker(int number, cudaStream_t stream);

}  // namespace warpline::bench

#endif  // WARPLINE_KERNELS_BENCH_HARNESS_MARKER_H_
