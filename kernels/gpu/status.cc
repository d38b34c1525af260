#include "kernels/gpu/status.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace warpline::gpu {

bool IsContextLost(cudaError_t error) {
  switch (error) {
    // According to driver_types.h of CUDA 13.0, the process must be terminated and relaunched after these
    // errors.
    case cudaErrorContained:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorTensorMemoryLeak:
    case cudaErrorMpsClientTerminated:
    case cudaErrorExternalDevice:
    // The header does not say this explicitly of these errors. But after them, all later calls of this
    // process fail too.
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorUnknown:
    case cudaErrorDevicesUnavailable:
    case cudaErrorContextIsDestroyed:
    case cudaErrorCudartUnloading:
      return true;
    default:
      return false;
  }
}

absl::Status ErrorStatus(cudaError_t error, std::string_view doing) {
  cudaGetLastError();  // otherwise a launch failure would appear again in an unrelated call
  const std::string text = absl::StrCat(cudaGetErrorName(error), " (", cudaGetErrorString(error), ") while ",
                                        absl::string_view(doing.data(), doing.size()));
  if (error == cudaErrorMemoryAllocation) return absl::ResourceExhaustedError(text);
  if (IsContextLost(error)) return absl::UnavailableError(text);
  return absl::InternalError(text);
}

}  // namespace warpline::gpu
