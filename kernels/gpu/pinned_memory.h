// Page-locked host memory: the GPU reads and writes it by DMA.
#ifndef WARPLINE_KERNELS_GPU_PINNED_MEMORY_H_
#define WARPLINE_KERNELS_GPU_PINNED_MEMORY_H_

#include <cstddef>
#include <memory>
#include <span>

#include "absl/status/statusor.h"

namespace warpline::gpu {

// Anonymous huge pages, touched by several threads and then registered, so that the page faults of gigabytes
// are not those of one thread.
class PinnedMemory {
 public:
  static absl::StatusOr<PinnedMemory> Allocate(std::size_t bytes);
  PinnedMemory(PinnedMemory&& other) noexcept;
  PinnedMemory& operator=(PinnedMemory&&) = delete;
  ~PinnedMemory();
  std::span<std::byte> bytes() { return bytes_; }

 private:
  explicit PinnedMemory(std::span<std::byte> bytes) : bytes_(bytes) {}
  std::span<std::byte> bytes_;
};

// Makes memory that is there already page-locked and addressable by all devices, until the result goes.
absl::StatusOr<std::shared_ptr<void>> RegisterHostMemory(std::span<std::byte> bytes);

}  // namespace warpline::gpu

#endif  // WARPLINE_KERNELS_GPU_PINNED_MEMORY_H_
