// Page-locked host memory, which the GPU reads and writes by DMA.
#ifndef WARPLINE_KERNELS_GPU_PINNED_MEMORY_H_
#define WARPLINE_KERNELS_GPU_PINNED_MEMORY_H_

#include <cstddef>
#include <memory>
#include <span>

#include "absl/status/statusor.h"

namespace warpline::gpu {

// Uses anonymous huge pages. Several threads touch them before they are registered. So a single thread need
// not handle the page faults of gigabytes.
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

// Makes existing memory page-locked and addressable by all devices, until the result is destroyed.
absl::StatusOr<std::shared_ptr<void>> RegisterHostMemory(std::span<std::byte> bytes);

}  // namespace warpline::gpu

#endif  // WARPLINE_KERNELS_GPU_PINNED_MEMORY_H_
