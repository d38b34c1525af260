// More shared memory for a kernel than it may have unasked.
#ifndef WARPLINE_KERNELS_ALLOW_SHARED_BYTES_H_
#define WARPLINE_KERNELS_ALLOW_SHARED_BYTES_H_

#include <cuda_runtime_api.h>

namespace warpline {

// Allows launches of the kernel on the current device so many bytes of dynamic shared memory. The limit is
// the kernel's and not that of a launch: give always the same. The device is asked once. An error if it does
// not have them. Thread-safe.
cudaError_t AllowSharedBytes(const void* kernel, int bytes);

template <typename... Args>
cudaError_t AllowSharedBytes(void (*kernel)(Args...), int bytes) {
  return AllowSharedBytes(reinterpret_cast<const void*>(kernel), bytes);
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_ALLOW_SHARED_BYTES_H_
