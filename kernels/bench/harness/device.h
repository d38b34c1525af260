// The GPU under measurement: the current device, and what a launcher may use besides its operands.
#ifndef WARPLINE_KERNELS_BENCH_HARNESS_DEVICE_H_
#define WARPLINE_KERNELS_BENCH_HARNESS_DEVICE_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "kernels/cuda_variants.h"
#include "kernels/gemm/cublaslt.h"
#include "kernels/gpu/handle.h"

namespace warpline::bench {

struct Device {
  cudaDeviceProp properties;
  int driver_version = 0;   // 13000: 13.0
  int runtime_version = 0;  // of the toolkit that we were built with
  std::string why_no_cublaslt;
  std::unique_ptr<CublasLt> cublaslt;
  CudaContext context;  // context.cublaslt points to *cublaslt
  gpu::Stream stream;

  std::size_t l2_bytes() const { return static_cast<std::size_t>(properties.l2CacheSize); }
};

// Nothing, and why, on a machine without a GPU that this build runs on.
std::optional<Device> OpenDevice(std::string* why_not);

// Bytes that can still be allocated, with something left for the libraries.
std::size_t FreeBytes();

}  // namespace warpline::bench

#endif  // WARPLINE_KERNELS_BENCH_HARNESS_DEVICE_H_
