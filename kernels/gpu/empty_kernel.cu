#include "kernels/gpu/empty_kernel.h"

namespace warpline::gpu {
namespace {

__global__ void Nothing() {}

}  // namespace

cudaError_t FindKernelImage(int* capability) {
  cudaFuncAttributes attributes = {};
  const cudaError_t error = cudaFuncGetAttributes(&attributes, Nothing);
  *capability = attributes.ptxVersion;
  return error;
}

cudaError_t LaunchEmptyKernel(unsigned ctas, cudaStream_t stream) {
  Nothing<<<ctas, 256, 0, stream>>>();
  return cudaGetLastError();
}

}  // namespace warpline::gpu
