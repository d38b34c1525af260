// Lets pure functions be called both from kernels and from code of a host compiler without CUDA.
#ifndef WARPLINE_KERNELS_HOST_DEVICE_H_
#define WARPLINE_KERNELS_HOST_DEVICE_H_

#ifdef __CUDACC__
#define WARPLINE_HOST_DEVICE __host__ __device__
#else
#define WARPLINE_HOST_DEVICE
#endif

#endif  // WARPLINE_KERNELS_HOST_DEVICE_H_
