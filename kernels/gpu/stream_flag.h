// A word of host memory that tells how far a stream has come.
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

// Every question about an event takes a lock of the driver, which those who launch need too; a word that the
// device writes can be looked at for nothing. It says nothing of errors: after one it is never written.
class StreamFlag {
 public:
  // For streams of the device that is current, which must use host pointers as they are.
  static absl::StatusOr<StreamFlag> Create();

  // Enqueues the end of a section: once all that the stream was given before has ended, and its writes can be
  // seen by the host, Reached() holds. Returns at once.
  absl::Status Enqueue(cudaStream_t stream);
  // True if the section that was enqueued last has ended. Called by the thread that enqueued it.
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
