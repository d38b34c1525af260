// Checks whether two results are the same except for rounding.
#ifndef WARPLINE_KERNELS_GPU_COUNT_DIFFERENT_H_
#define WARPLINE_KERNELS_GPU_COUNT_DIFFERENT_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/dtype.h"

namespace warpline::gpu {

// Adds to *different, in device memory, the number of elements with |x - y| > absolute + relative * |y|. NaN
// equals NaN, and an infinity equals itself. The two parts of complex numbers count separately. Other types
// are compared bit by bit, regardless of the bounds.
cudaError_t CountDifferent(const void* x, const void* y, DType dtype, std::int64_t count, double absolute,
                           double relative, unsigned long long* different, cudaStream_t stream);

}  // namespace warpline::gpu

#endif  // WARPLINE_KERNELS_GPU_COUNT_DIFFERENT_H_
