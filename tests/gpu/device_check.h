// Inputs that are made, and results that are checked, on the device: for tensors too large to copy.
#ifndef WARPLINE_TESTS_GPU_DEVICE_CHECK_H_
#define WARPLINE_TESTS_GPU_DEVICE_CHECK_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/problem.h"

namespace warpline {

// Elements of 1, 4 or 8 bytes: each gets the low bytes of a hash of its index.
cudaError_t LaunchFill(std::size_t element_bytes, std::int64_t count, void* data, cudaStream_t stream);

// Adds to *wrong the elements of `out` that are not what the transposition makes of a filled input.
cudaError_t LaunchCountWrong(const TransposeProblem& problem, const void* out, unsigned long long* wrong,
                             cudaStream_t stream);

}  // namespace warpline

#endif  // WARPLINE_TESTS_GPU_DEVICE_CHECK_H_
