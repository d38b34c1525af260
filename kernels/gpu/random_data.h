// Contents of device memory: random inputs, and poison where a result must come.
#ifndef WARPLINE_KERNELS_GPU_RANDOM_DATA_H_
#define WARPLINE_KERNELS_GPU_RANDOM_DATA_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/dtype.h"

namespace warpline::gpu {

// Numbers of any real or complex type, of which the parts are numbers. Of floating-point types standard
// normal ones: as zeros switch no transistors, a product of them draws less power and runs at higher clocks.
// Of integers normal ones times 50, rounded, so that their sums are exact in f64; unsigned ones are 0 where
// those are negative, booleans false.
cudaError_t FillNumbers(void* data, DType dtype, std::int64_t count, std::uint64_t seed, cudaStream_t stream);

// Random bits, for what moves elements and does not look at them. `data` is aligned to 8 bytes.
cudaError_t FillBits(void* data, std::size_t bytes, std::uint64_t seed, cudaStream_t stream);

// All bits set: NaN in every floating-point type.
inline cudaError_t Poison(void* data, std::size_t bytes, cudaStream_t stream) {
  return cudaMemsetAsync(data, 0xff, bytes, stream);
}

}  // namespace warpline::gpu

#endif  // WARPLINE_KERNELS_GPU_RANDOM_DATA_H_
