#include "server/memory/shared_memory.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"

// Younger than some headers, but not than the kernels that we run on.
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace warpline {
namespace {

absl::Status Unfit(const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat("the descriptor ", why));
}

}  // namespace

absl::Status CheckShareable(int fd, std::size_t bytes) {
  struct stat status {};
  if (fstat(fd, &status) != 0) return Unfit(absl::StrCat("cannot be examined: ", std::strerror(errno)));
  if (!S_ISREG(status.st_mode)) return Unfit("is no memfd");
  // Fails for all that cannot be sealed, which is all but memfds and their like.
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0) return Unfit("is no memfd");
  struct statfs system {};
  if (fstatfs(fd, &system) != 0 || system.f_type != TMPFS_MAGIC) {
    return Unfit("is a memfd of huge pages (MFD_HUGETLB); it must have ordinary ones");
  }
  const int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || (flags & O_ACCMODE) != O_RDWR) return Unfit("is not open for reading and writing");
  if ((seals & F_SEAL_SHRINK) == 0) return Unfit("lacks the seal F_SEAL_SHRINK");
  if ((seals & F_SEAL_GROW) == 0) return Unfit("lacks the seal F_SEAL_GROW");
  if ((seals & F_SEAL_WRITE) != 0) return Unfit("has the seal F_SEAL_WRITE, so that nothing can be written");
  if ((seals & F_SEAL_FUTURE_WRITE) != 0) {
    return Unfit("has the seal F_SEAL_FUTURE_WRITE, so that nothing can be written");
  }
  // What is asked from here on stays as it is, as the seals cannot be taken off again.
  if (static_cast<std::uint64_t>(status.st_size) != bytes) {
    return Unfit(absl::StrCat("has ", status.st_size, " bytes; Open was told ", bytes));
  }
  constexpr std::uint64_t kBlockBytes = 512;
  const std::uint64_t allocated = static_cast<std::uint64_t>(status.st_blocks) * kBlockBytes;
  if (allocated < bytes) {
    return Unfit(absl::StrCat("has holes: ", allocated, " of its ", bytes, " bytes are allocated"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Buffer> MapShared(int fd, std::size_t bytes) {
  void* const address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (address == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("mapping ", bytes, " bytes of shared memory: ", std::strerror(errno)));
  }
  std::shared_ptr<void> owner(address, [bytes](void* mapped) { munmap(mapped, bytes); });
  madvise(address, bytes, MADV_DONTFORK);
  madvise(address, bytes, MADV_DONTDUMP);
  // Tells of what a later access would be killed for. An old kernel does not know it, and maps pages one by
  // one.
  if (madvise(address, bytes, MADV_POPULATE_WRITE) != 0 && errno != EINVAL) {
    return absl::ResourceExhaustedError(
        absl::StrCat("touching ", bytes, " bytes of shared memory: ", std::strerror(errno)));
  }
  return Buffer({static_cast<std::byte*>(address), bytes}, {.kind = Place::Kind::kPinned}, std::move(owner));
}

}  // namespace warpline
