#include "kernels/gpu/kernel_image.h"

namespace warpline::gpu {
namespace {

__global__ void Nothing() {}

}  // namespace

cudaError_t FindKernelImage() {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, Nothing);
}

}  // namespace warpline::gpu
