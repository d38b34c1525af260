// A word of host memory that shows the progress of a stream.
#ifndef WARPLINE_KERNELS_GPU_STREAM_FLAG_H_
#define WARPLINE_KERNELS_GPU_STREAM_FLAG_H_

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/gpu/pinned_memory.h"

namespace warpline::gpu {

// Every event query takes a lock of the driver, which launches need too. Reading a word that the device
// writes costs nothing. The word does not show errors: after an error it is never written.
class StreamFlag {
 public:
  // For streams of the current device, which must be able to use host pointers directly.
  static absl::StatusOr<StreamFlag> Create();

  // Enqueues the end of a section. Reached() becomes true once all earlier work of the stream has ended and
  // the host can see its writes. Returns at once.
  absl::Status Enqueue(cudaStream_t stream);
  // Returns true if the last enqueued section has ended. Call it on the thread that enqueued the section.
  bool Reached() const { return word().load(std::memory_order_acquire) == sections_; }

 private:
  explicit StreamFlag(PinnedMemory memory) : memory_(std::move(memory)) {}
  std::atomic_ref<std::uint32_t> word() const {
    return std::atomic_ref(*reinterpret_cast<std::uint32_t*>(memory_.bytes().data()));
  }

  mutable PinnedMemory memory_;
  std::uint32_t sections_ = 0;
};

}  // namespace warpline::gpu

#endif  // WARPLINE_KERNELS_GPU_STREAM_FLAG_H_
