#include "kernels/bench/harness/device.h"

#include "absl/strings/str_cat.h"
#include "kernels/bench/harness/check.h"
#include "kernels/gpu/device_count.h"
#include "kernels/gpu/empty_kernel.h"

namespace warpline::bench {

std::optional<Device> OpenDevice(std::string* why_not) {
  if (const absl::StatusOr<int> count = gpu::CountDevices(); !count.ok()) {
    *why_not = std::string(count.status().message());
    return std::nullopt;
  }
  cudaError_t error = cudaSetDevice(0);
  int code_capability = 0;
  if (error == cudaSuccess) error = gpu::FindKernelImage(&code_capability);
  if (error != cudaSuccess) {
    *why_not = absl::StrCat("no usable GPU: ", cudaGetErrorString(error));
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
                           .has_cublaslt = device.cublaslt != nullptr,
                           .code_capability = code_capability};
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
