#include "kernels/bench/device.h"

#include "kernels/bench/check.h"
#include "kernels/gpu/kernel_image.h"

namespace warpline::bench {

std::optional<Device> OpenDevice(std::string* why_not) {
  int count = 0;
  cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess && count == 0) error = cudaErrorNoDevice;
  if (error == cudaSuccess) error = cudaSetDevice(0);
  if (error == cudaSuccess) error = gpu::FindKernelImage();
  if (error != cudaSuccess) {
    // Without any driver the runtime says that it is too old.
    int driver = 0;
    const bool none = cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0;
    *why_not = none ? "no NVIDIA driver found" : cudaGetErrorString(error);
    cudaGetLastError();
    return std::nullopt;
  }
  Device device;
  Check(cudaGetDeviceProperties(&device.properties, 0), "reading device properties");
  Check(cudaDriverGetVersion(&device.driver_version), "reading the driver's version");
  Check(cudaRuntimeGetVersion(&device.runtime_version), "reading the runtime's version");
  device.cublaslt = CublasLt::Load(&device.why_no_cublaslt);
  device.context.cublaslt = device.cublaslt.get();
  device.context.traits = {.compute_capability = device.properties.major * 10 + device.properties.minor,
                           .multiprocessors = device.properties.multiProcessorCount,
                           .has_cublaslt = device.cublaslt != nullptr};
  device.stream = Value(gpu::CreateStream());
  return device;
}

std::size_t FreeBytes() {
  std::size_t free = 0, total = 0;
  Check(cudaMemGetInfo(&free, &total), "reading the free memory");
  constexpr std::size_t kReserve = std::size_t{512} << 20;
  return free > kReserve ? free - kReserve : 0;
}

}  // namespace warpline::bench
