#include "server/store/shared_memory.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <string>

#include "absl/strings/str_cat.h"

// Some headers are older than these constants.
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

// Calls `call` with one part after the other until it returns false, and returns the last result. If it got
// several gigabytes at once, the kernel would block all other threads of the process from its memory for
// seconds.
template <typename Call>
bool ForEachPart(std::span<std::byte> memory, const Call& call) {
  constexpr std::size_t kPart = std::size_t{4} << 20;
  for (std::size_t at = 0; at < memory.size(); at += kPart) {
    if (!call(memory.subspan(at, std::min(kPart, memory.size() - at)))) return false;
  }
  return true;
}

}  // namespace

bool CanBeSealed(int fd) { return fcntl(fd, F_GET_SEALS) >= 0; }

absl::Status CheckShareable(int fd, std::size_t bytes) {
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
  // Seals cannot be removed, so the checks from here on stay valid: the size, and that there are no blocks
  // after the end. Such blocks would be counted and hide the same number of holes.
  struct stat status {};
  if (fstat(fd, &status) != 0) return Unfit(absl::StrCat("cannot be examined: ", std::strerror(errno)));
  if (static_cast<std::uint64_t>(status.st_size) != bytes) {
    return Unfit(absl::StrCat("has ", status.st_size, " bytes; Open was told ", bytes));
  }
  constexpr off_t kEnd = std::numeric_limits<off_t>::max() / 2;
  if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, status.st_size, kEnd - status.st_size) != 0 ||
      fstat(fd, &status) != 0) {
    return Unfit(absl::StrCat("cannot be freed of blocks behind its end: ", std::strerror(errno)));
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
  const std::span<std::byte> mapped(static_cast<std::byte*>(address), bytes);
  std::shared_ptr<void> owner(address, [mapped](void*) {
    ForEachPart(mapped, [](std::span<std::byte> part) { return munmap(part.data(), part.size()) == 0; });
  });
  madvise(address, bytes, MADV_DONTFORK);
  madvise(address, bytes, MADV_DONTDUMP);
  // Reports a failure that would otherwise kill the process at a later access. Kernels before 5.14 do not
  // know this call; there pages are mapped at their first use.
  const bool populated = ForEachPart(mapped, [](std::span<std::byte> part) {
    return madvise(part.data(), part.size(), MADV_POPULATE_WRITE) == 0 || errno == EINVAL;
  });
  if (!populated) {
    return absl::ResourceExhaustedError(
        absl::StrCat("touching ", bytes, " bytes of shared memory: ", std::strerror(errno)));
  }
  return Buffer(mapped, {.kind = Place::Kind::kPinned}, std::move(owner));
}

}  // namespace warpline
