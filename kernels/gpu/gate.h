// A gate in a stream: what is enqueued behind it begins when the host opens it.
#ifndef WARPLINE_KERNELS_GPU_GATE_H_
#define WARPLINE_KERNELS_GPU_GATE_H_

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/gpu/pinned_memory.h"

namespace warpline::gpu {

// Keeps the time that the host takes to enqueue out of the times between events: a stream executes an event
// as soon as it comes to it, and the kernel behind it only when the host has launched it. A gate is one
// block, which waits for a word of host memory. It opens by itself when it has waited for some time, so that
// a host that is slow, or a library that waits for the device, is delayed and not stopped. For one stream at
// a time.
class Gate {
 public:
  static constexpr std::uint64_t kMaxWaitNanoseconds = 200'000, kMaxWaitNanosecondsPerStep = 10'000;

  // For streams of the device that is current, which must use host pointers as they are.
  static absl::StatusOr<Gate> Create();

  // Enqueues a closed gate, behind which so many steps are to come. The last one must have been opened, and
  // the stream have come past it.
  absl::Status Enqueue(cudaStream_t stream, std::size_t steps = 1);
  void Open() { word(0).store(turn_, std::memory_order_release); }
  // Returns whether the last gate stayed closed until it was opened. Ask once the stream has come past it.
  bool Held() const { return word(1).load(std::memory_order_acquire) != turn_; }

 private:
  explicit Gate(PinnedMemory memory) : memory_(std::move(memory)) {}
  // 0: the last gate that was opened. 1: the last gate that did not wait any longer.
  std::atomic_ref<std::uint32_t> word(int index) const {
    return std::atomic_ref(reinterpret_cast<std::uint32_t*>(memory_.bytes().data())[index]);
  }

  mutable PinnedMemory memory_;
  std::uint32_t turn_ = 0;
};

}  // namespace warpline::gpu

#endif  // WARPLINE_KERNELS_GPU_GATE_H_
