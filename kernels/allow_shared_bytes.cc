#include "kernels/allow_shared_bytes.h"

#include <mutex>
#include <set>
#include <shared_mutex>
#include <utility>

namespace warpline {

cudaError_t AllowSharedBytes(const void* kernel, int bytes) {
  static std::shared_mutex mutex;
  static auto& allowed = *new std::set<std::pair<const void*, int>>();  // kernels and devices
  int device = 0;
  if (const cudaError_t error = cudaGetDevice(&device); error != cudaSuccess) return error;
  {
    const std::shared_lock lock(mutex);
    if (allowed.contains({kernel, device})) return cudaSuccess;
  }
  const cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (error != cudaSuccess) {
    cudaGetLastError();
    return error;
  }
  const std::unique_lock lock(mutex);
  allowed.emplace(kernel, device);
  return cudaSuccess;
}

}  // namespace warpline
