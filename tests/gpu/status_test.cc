// Which errors of CUDA mean what. Needs no GPU.
#include "kernels/gpu/status.h"

#include <gtest/gtest.h>

namespace warpline::gpu {
namespace {

// Every error of which driver_types.h of CUDA 13.0 says: "To continue using CUDA, the process must be
// terminated and relaunched."
constexpr cudaError_t kSticky[] = {cudaErrorContained,          cudaErrorIllegalAddress,
                                   cudaErrorLaunchTimeout,      cudaErrorAssert,
                                   cudaErrorHardwareStackError, cudaErrorIllegalInstruction,
                                   cudaErrorMisalignedAddress,  cudaErrorInvalidAddressSpace,
                                   cudaErrorInvalidPc,          cudaErrorLaunchFailure,
                                   cudaErrorTensorMemoryLeak,   cudaErrorMpsClientTerminated,
                                   cudaErrorExternalDevice};

TEST(CudaStatusTest, EveryStickyErrorIsALostContext) {
  for (cudaError_t error : kSticky) {
    EXPECT_TRUE(IsContextLost(error)) << cudaGetErrorName(error);
    EXPECT_EQ(ToStatus(error, "testing").code(), absl::StatusCode::kUnavailable) << cudaGetErrorName(error);
  }
}

TEST(CudaStatusTest, ErrorsThatPassAreNot) {
  EXPECT_EQ(ToStatus(cudaErrorMemoryAllocation, "testing").code(), absl::StatusCode::kResourceExhausted);
  for (cudaError_t error :
       {cudaErrorInvalidValue, cudaErrorLaunchOutOfResources, cudaErrorInvalidConfiguration,
        cudaErrorNotSupported, cudaErrorStreamCaptureInvalidated}) {
    EXPECT_FALSE(IsContextLost(error)) << cudaGetErrorName(error);
    EXPECT_EQ(ToStatus(error, "testing").code(), absl::StatusCode::kInternal) << cudaGetErrorName(error);
  }
  EXPECT_TRUE(ToStatus(cudaSuccess, "testing").ok());
}

}  // namespace
}  // namespace warpline::gpu
