// Barriers in shared memory that also count bytes (mbarrier), and copies that report to them. The names are
// those of the PTX ISA. For sm_90 and later.
#ifndef WARPLINE_KERNELS_GPU_MBARRIER_CUH_
#define WARPLINE_KERNELS_GPU_MBARRIER_CUH_

#include <cstdint>

namespace warpline {

__device__ inline std::uint32_t SharedAddress(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

// A barrier. Its phase completes when all arrivals, and all bytes that they announced, are there.
class Mbarrier {
 public:
  __device__ void Init(int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(Address()), "r"(arrivals));
  }
  __device__ void Arrive() {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(Address()) : "memory");
  }
  __device__ void ArriveExpectBytes(std::uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(Address()), "r"(bytes)
                 : "memory");
  }
  // Waits until the phase with this parity has completed.
  __device__ void Wait(std::uint32_t parity) {
    std::uint32_t is_complete = 0;
    while (is_complete == 0) {
      asm volatile(
          "{\n.reg .pred p;\n"
          "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
          "selp.u32 %0, 1, 0, p;\n}\n"
          : "=r"(is_complete)
          : "r"(Address()), "r"(parity)
          : "memory");
    }
  }
  __device__ std::uint32_t Address() const { return SharedAddress(this); }

 private:
  std::uint64_t state_;
};

// Makes the Init of barriers visible to the tensor memory accelerator.
__device__ inline void FenceMbarrierInit() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Orders this thread's earlier writes to shared memory before copies that it starts later.
__device__ inline void FenceBeforeCopies() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// Copies `bytes` to shared memory and reports them to the barrier. Addresses and size must be multiples of
// 16.
__device__ inline void CopyBulk(void* to, const void* from, std::uint32_t bytes, Mbarrier& barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
          SharedAddress(to)),
      "l"(from), "r"(bytes), "r"(barrier.Address())
      : "memory");
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_GPU_MBARRIER_CUH_
