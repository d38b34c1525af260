// Allows a kernel more dynamic shared memory than the default limit.
#ifndef WARPLINE_KERNELS_ALLOW_SHARED_BYTES_H_
#define WARPLINE_KERNELS_ALLOW_SHARED_BYTES_H_

#include <cuda_runtime_api.h>

namespace warpline {

// Allows launches of the kernel on the current device to use `bytes` bytes of dynamic shared memory. The
// limit belongs to the kernel, not to a launch. The first call for a kernel and device sets it, and later
// calls change nothing, so always pass the same value. Returns an error if the device does not have that
// much. Thread-safe.
cudaError_t AllowSharedBytes(const void* kernel, int bytes);

template <typename... Args>
cudaError_t AllowSharedBytes(void (*kernel)(Args...), int bytes) {
  return AllowSharedBytes(reinterpret_cast<const void*>(kernel), bytes);
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_ALLOW_SHARED_BYTES_H_
