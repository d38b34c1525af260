// A kernel that does nothing. It shows whether this build's device code runs on a device, and how long it
// takes to launch and time a kernel.
#ifndef WARPLINE_KERNELS_GPU_EMPTY_KERNEL_H_
#define WARPLINE_KERNELS_GPU_EMPTY_KERNEL_H_

#include <cuda_runtime_api.h>

namespace warpline::gpu {

// Sets `capability` to that of the code that runs on the current device, 90 for sm_90. It may be lower than
// that of the device. Returns cudaErrorNoKernelImageForDevice if this build was not compiled for the
// architecture of the current device. All files of device code are compiled for the same architectures.
cudaError_t FindKernelImage(int* capability);

// Launches `ctas` CTAs of 256 threads; `ctas` must be at least 1.
cudaError_t LaunchEmptyKernel(unsigned ctas, cudaStream_t stream);

}  // namespace warpline::gpu

#endif  // WARPLINE_KERNELS_GPU_EMPTY_KERNEL_H_
