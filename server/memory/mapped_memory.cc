#include "server/memory/mapped_memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace warpline {

absl::StatusOr<Buffer> MapMemory(std::size_t bytes) {
  if (bytes == 0) return Buffer();
  void* const address =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) {
    return absl::ResourceExhaustedError(absl::StrCat("mapping ", bytes, " bytes: ", std::strerror(errno)));
  }
  const std::shared_ptr<void> owner(address, [bytes](void* mapped) { munmap(mapped, bytes); });
  return Buffer({static_cast<std::byte*>(address), bytes}, {.kind = Place::Kind::kHost}, owner);
}

}  // namespace warpline
