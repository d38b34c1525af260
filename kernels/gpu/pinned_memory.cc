#include "kernels/gpu/pinned_memory.h"

#include <cuda_runtime_api.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/gpu/status.h"

namespace warpline::gpu {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

void Touch(std::span<std::byte> bytes) {
  const std::size_t threads = std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, 8);
  const std::size_t share = (bytes.size() / threads / kHugePage + 1) * kHugePage;
  std::vector<std::jthread> workers;
  for (std::size_t begin = 0; begin < bytes.size(); begin += share) {
    workers.emplace_back([part = bytes.subspan(begin, std::min(share, bytes.size() - begin))] {
      std::memset(part.data(), 0, part.size());
    });
  }
}

}  // namespace

absl::StatusOr<PinnedMemory> PinnedMemory::Allocate(std::size_t bytes) {
  void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("mapping ", bytes, " bytes of staging memory: ", std::strerror(errno)));
  }
  madvise(address, bytes, MADV_HUGEPAGE);  // only a hint: small pages work too
  std::span<std::byte> span(static_cast<std::byte*>(address), bytes);
  Touch(span);
  const cudaError_t error =
      cudaHostRegister(address, bytes, cudaHostRegisterPortable | cudaHostRegisterMapped);
  if (error != cudaSuccess) {
    munmap(address, bytes);
    return ErrorStatus(error, absl::StrCat("pinning ", bytes, " bytes of staging memory"));
  }
  return PinnedMemory(span);
}

absl::StatusOr<std::shared_ptr<void>> RegisterHostMemory(std::span<std::byte> bytes) {
  const cudaError_t error =
      cudaHostRegister(bytes.data(), bytes.size(), cudaHostRegisterPortable | cudaHostRegisterMapped);
  if (error != cudaSuccess) return ErrorStatus(error, absl::StrCat("pinning ", bytes.size(), " bytes"));
  return std::shared_ptr<void>(bytes.data(), [](void* address) { cudaHostUnregister(address); });
}

PinnedMemory::PinnedMemory(PinnedMemory&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

PinnedMemory::~PinnedMemory() {
  if (bytes_.empty()) return;
  cudaHostUnregister(bytes_.data());
  munmap(bytes_.data(), bytes_.size());
}

}  // namespace warpline::gpu
