// Functions of the CUDA driver that have no equivalent in the runtime.
#ifndef WARPLINE_KERNELS_GPU_DRIVER_FUNCTION_H_
#define WARPLINE_KERNELS_GPU_DRIVER_FUNCTION_H_

#include <cuda_runtime_api.h>

namespace warpline::gpu {

// Returns the function from the installed driver, as of this version (12040 for 12.4); null if the driver
// does not have it. If the program linked to the driver, it would not start where there is none.
template <typename Function>
Function FindDriverFunction(const char* name, unsigned version) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion(name, &function, version, cudaEnableDefault, &found);
  if (error != cudaSuccess || found != cudaDriverEntryPointSuccess) return nullptr;
  return reinterpret_cast<Function>(function);
}

}  // namespace warpline::gpu

#endif  // WARPLINE_KERNELS_GPU_DRIVER_FUNCTION_H_
