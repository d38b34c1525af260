// A kernel that does nothing: to learn whether this build's device code runs on a device, and what it takes
// to launch and to time a kernel.
#ifndef WARPLINE_KERNELS_GPU_EMPTY_KERNEL_H_
#define WARPLINE_KERNELS_GPU_EMPTY_KERNEL_H_

#include <cuda_runtime_api.h>

namespace warpline::gpu {

// Sets `capability` to that of the code that runs on the current device, 90 for sm_90; it may be an earlier
// one than the device's. cudaErrorNoKernelImageForDevice if the current device is of none of the
// architectures that this build was compiled for. All files of device code are compiled for the same ones.
cudaError_t FindKernelImage(int* capability);

// Launches `ctas` CTAs of 256 threads; `ctas` is at least 1.
cudaError_t LaunchEmptyKernel(unsigned ctas, cudaStream_t stream);

}  // namespace warpline::gpu

#endif  // WARPLINE_KERNELS_GPU_EMPTY_KERNEL_H_
