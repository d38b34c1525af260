#include "server/memory/mapped_memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "kernels/align.h"

namespace warpline {

absl::StatusOr<Buffer> MapMemory(std::size_t bytes, Pages pages) {
  if (bytes == 0) return Buffer();
  void* const address =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) {
    return absl::ResourceExhaustedError(absl::StrCat("mapping ", bytes, " bytes: ", std::strerror(errno)));
  }
  // Only a hint: without huge pages everything works, but slower.
  if (pages == Pages::kHuge) (void)madvise(address, bytes, MADV_HUGEPAGE);
  const std::shared_ptr<void> owner(address, [bytes](void* mapped) { munmap(mapped, bytes); });
  return Buffer({static_cast<std::byte*>(address), bytes}, {.kind = Place::Kind::kHost}, owner);
}

absl::StatusOr<Buffer> AllocateMemory(std::size_t bytes, std::size_t alignment) {
  constexpr std::size_t kMapped = std::size_t{1} << 20;
  if (bytes == 0 || bytes >= kMapped) return MapMemory(bytes, Pages::kHuge);
  void* const address = std::aligned_alloc(alignment, AlignUp(bytes, alignment));
  if (address == nullptr)
    return absl::ResourceExhaustedError(absl::StrCat("no memory for ", bytes, " bytes"));
  const std::shared_ptr<void> owner(address, [](void* allocated) { std::free(allocated); });
  return Buffer({static_cast<std::byte*>(address), bytes}, {.kind = Place::Kind::kHost}, owner);
}

}  // namespace warpline
