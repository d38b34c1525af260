// Converts cudaError_t to absl::Status. No other code does this.
#ifndef WARPLINE_KERNELS_GPU_STATUS_H_
#define WARPLINE_KERNELS_GPU_STATUS_H_

#include <cuda_runtime_api.h>

#include <string_view>

#include "absl/status/status.h"

namespace warpline::gpu {

// True if the context is unusable: every later call would fail too, and only a new process helps.
bool IsContextLost(cudaError_t error);

// The slow path of ToStatus. `doing` completes "while ...". Out of memory becomes RESOURCE_EXHAUSTED, a lost
// context UNAVAILABLE, any other error INTERNAL. Clears the thread's last error if it is not sticky.
absl::Status ErrorStatus(cudaError_t error, std::string_view doing);

inline absl::Status ToStatus(cudaError_t error, std::string_view doing) {
  return error == cudaSuccess ? absl::OkStatus() : ErrorStatus(error, doing);
}

}  // namespace warpline::gpu

#endif  // WARPLINE_KERNELS_GPU_STATUS_H_
