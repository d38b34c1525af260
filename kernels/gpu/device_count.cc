#include "kernels/gpu/device_count.h"

#include <cuda_runtime_api.h>

#include "absl/strings/str_cat.h"

namespace warpline::gpu {

absl::StatusOr<int> CountDevices() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess && count > 0) return count;
  cudaGetLastError();
  const char* reason = error == cudaSuccess ? "none found" : cudaGetErrorString(error);
  // Without any driver, the runtime reports that the driver is too old.
  int driver = 0;
  if (cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0) reason = "no NVIDIA driver found";
  return absl::UnavailableError(absl::StrCat("no usable GPU: ", reason));
}

bool GpuIsPresent() {
  int driver = 0;
  if (cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0) return false;
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  cudaGetLastError();
  return error != cudaErrorNoDevice && (error != cudaSuccess || count > 0);
}

}  // namespace warpline::gpu
