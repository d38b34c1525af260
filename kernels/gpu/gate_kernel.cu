#include "kernels/gpu/gate_kernel.h"

namespace warpline::gpu {
namespace {

__device__ std::uint64_t Nanoseconds() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__global__ void WaitAtGate(const volatile std::uint32_t* opened, volatile std::uint32_t* late,
                           std::uint32_t turn, std::uint64_t max_nanoseconds) {
  const std::uint64_t begin = Nanoseconds();
  while (*opened != turn) {
    if (Nanoseconds() - begin > max_nanoseconds) {
      *late = turn;
      __threadfence_system();
      return;
    }
  }
}

}  // namespace

cudaError_t LaunchGate(const std::uint32_t* opened, std::uint32_t* late, std::uint32_t turn,
                       std::uint64_t max_nanoseconds, cudaStream_t stream) {
  WaitAtGate<<<1, 1, 0, stream>>>(opened, late, turn, max_nanoseconds);
  return cudaGetLastError();
}

}  // namespace warpline::gpu
