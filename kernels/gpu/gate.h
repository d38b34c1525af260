// A gate in a stream: work enqueued after it begins only when the host opens it.
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

// Excludes the host's enqueue time from the times between events. Without a gate, a stream executes an event
// as soon as it reaches it, but the kernel after it only when the host has launched it. A gate is a kernel
// that waits for a word of host memory. It opens by itself after some time. So a slow host, or a library that
// waits for the device, is only delayed and does not hang. For one stream at a time.
class Gate {
 public:
  static constexpr std::uint64_t kMaxWaitNanoseconds = 200'000, kMaxWaitNanosecondsPerStep = 10'000;

  // For streams of the current device, which must be able to use host pointers directly.
  static absl::StatusOr<Gate> Create();

  // Enqueues a closed gate before `steps` steps. The last gate must have been opened, and the stream must
  // have passed it.
  absl::Status Enqueue(cudaStream_t stream, std::size_t steps = 1);
  void Open() { word(0).store(turn_, std::memory_order_release); }
  // Returns whether the last gate stayed closed until it was opened. Call it once the stream has passed the
  // gate.
  bool Held() const { return word(1).load(std::memory_order_acquire) != turn_; }

 private:
  explicit Gate(PinnedMemory memory) : memory_(std::move(memory)) {}
  // Word 0: the last gate that was opened. Word 1: the last gate that opened by itself.
  std::atomic_ref<std::uint32_t> word(int index) const {
    return std::atomic_ref(reinterpret_cast<std::uint32_t*>(memory_.bytes().data())[index]);
  }

  mutable PinnedMemory memory_;
  std::uint32_t turn_ = 0;
};

}  // namespace warpline::gpu

#endif  // WARPLINE_KERNELS_GPU_GATE_H_
