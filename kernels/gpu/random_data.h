// Fills device memory: with random inputs, or with poison before a result is written.
#ifndef WARPLINE_KERNELS_GPU_RANDOM_DATA_H_
#define WARPLINE_KERNELS_GPU_RANDOM_DATA_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/dtype.h"

namespace warpline::gpu {

// Fills with random numbers of any real or complex type; the parts of complex numbers are separate numbers.
// Floating-point numbers are standard normal: zeros would switch no transistors, so a product would draw less
// power and run at higher clocks. Integers are normal numbers times 50, rounded, so that their sums are exact
// in f64. If such a number is negative, unsigned integers are 0 and booleans false.
cudaError_t FillNumbers(void* data, DType dtype, std::int64_t count, std::uint64_t seed, cudaStream_t stream);

// Fills with random bits, for operations that only move elements. `data` must be aligned to 8 bytes.
cudaError_t FillBits(void* data, std::size_t bytes, std::uint64_t seed, cudaStream_t stream);

// Sets all bits: NaN in every floating-point type.
inline cudaError_t Poison(void* data, std::size_t bytes, cudaStream_t stream) {
  return cudaMemsetAsync(data, 0xff, bytes, stream);
}

}  // namespace warpline::gpu

#endif  // WARPLINE_KERNELS_GPU_RANDOM_DATA_H_
