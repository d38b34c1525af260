// The kernel of a Gate.
#ifndef WARPLINE_KERNELS_GPU_GATE_KERNEL_H_
#define WARPLINE_KERNELS_GPU_GATE_KERNEL_H_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace warpline::gpu {

// Launches one thread that waits until *opened is `turn`. If that takes longer than the limit, the thread
// sets *late to `turn` and ends.
cudaError_t LaunchGate(const std::uint32_t* opened, std::uint32_t* late, std::uint32_t turn,
                       std::uint64_t max_nanoseconds, cudaStream_t stream);

}  // namespace warpline::gpu

#endif  // WARPLINE_KERNELS_GPU_GATE_KERNEL_H_
