// Whether this build's device code runs on a device.
#ifndef WARPLINE_KERNELS_GPU_KERNEL_IMAGE_H_
#define WARPLINE_KERNELS_GPU_KERNEL_IMAGE_H_

#include <cuda_runtime_api.h>

namespace warpline::gpu {

// cudaErrorNoKernelImageForDevice if the current device is of none of the architectures that this build was
// compiled for. All files of device code are compiled for the same ones.
cudaError_t FindKernelImage();

}  // namespace warpline::gpu

#endif  // WARPLINE_KERNELS_GPU_KERNEL_IMAGE_H_
