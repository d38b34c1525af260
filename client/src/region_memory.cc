#include "client/src/region_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <system_error>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"

namespace warpline::client {
namespace {

// From this size on, a second thread is worth its start: the kernel clears about 3 GB/s of new pages per
// thread.
constexpr std::size_t kBytesPerThread = std::size_t{64} << 20;
constexpr std::size_t kMaxThreads = 8;
#ifndef MADV_POPULATE_WRITE
constexpr int MADV_POPULATE_WRITE = 23;  // since Linux 5.14; older C library headers lack it
#endif

absl::Status SystemRefuses(const char* what, std::size_t bytes, int error) {
  const std::string text = absl::StrCat("a region of ", bytes, " bytes: ", what, ": ", std::strerror(error));
  const bool full =
      error == ENOMEM || error == ENOSPC || error == EMFILE || error == ENFILE || error == EFBIG;
  return full ? absl::ResourceExhaustedError(text) : absl::UnavailableError(text);
}

// Runs in parallel, since clearing the pages takes most of the time. Errors are found later, when the rest is
// allocated.
void PopulateInParallel(std::byte* data, std::size_t bytes) {
  const std::size_t cpus = std::max(1u, std::thread::hardware_concurrency());
  const std::size_t count = std::min({cpus, kMaxThreads, bytes / kBytesPerThread});
  if (count < 2) return;
  constexpr std::size_t kPage = 4096;
  const std::size_t share = (bytes / count + kPage - 1) / kPage * kPage;
  std::vector<std::thread> threads;
  for (std::size_t begin = 0; begin < bytes; begin += share) {
    try {
      threads.emplace_back([part = data + begin, size = std::min(share, bytes - begin)] {
        (void)::madvise(part, size, MADV_POPULATE_WRITE);
      });
    } catch (const std::system_error&) {
      break;  // The system has no more threads. The rest takes longer.
    }
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

absl::StatusOr<std::unique_ptr<RegionMemory>> RegionMemory::Create(std::size_t bytes) {
  if (bytes > static_cast<std::size_t>(std::numeric_limits<off_t>::max())) {
    return SystemRefuses("cannot be made", bytes, EFBIG);
  }
  const int fd = ::memfd_create("warpline", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return SystemRefuses("memfd_create", bytes, errno);
  void* map = MAP_FAILED;
  const char* failed = nullptr;
  if (::ftruncate(fd, static_cast<off_t>(bytes)) != 0) {
    failed = "ftruncate";
  } else if (::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    failed = "sealing";
  } else if ((map = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)) == MAP_FAILED) {
    failed = "mmap";
  } else if (::madvise(map, bytes, MADV_DONTFORK) != 0) {
    failed = "madvise";
  }
  if (failed != nullptr) {
    const absl::Status status = SystemRefuses(failed, bytes, errno);
    if (map != MAP_FAILED) ::munmap(map, bytes);
    ::close(fd);
    return status;
  }
  return std::unique_ptr<RegionMemory>(new RegionMemory(fd, static_cast<std::byte*>(map), bytes));
}

RegionMemory::RegionMemory(int fd, std::byte* data, std::size_t bytes)
    : process_(::getpid()), fd_(fd), data_(data), bytes_(bytes) {}

RegionMemory::~RegionMemory() {
  CloseFd();
  // In a forked child, other memory may lie at this address.
  if (::getpid() == process_) ::munmap(data_, bytes_);
}

absl::Status RegionMemory::Populate() {
  PopulateInParallel(data_, bytes_);
  // Allocates the rest. Reports a lack of memory now, instead of by a signal at a later access.
  int error = 0;
  while ((error = ::posix_fallocate(fd_, 0, static_cast<off_t>(bytes_))) == EINTR) {
  }
  if (error != 0) return SystemRefuses("its memory cannot be allocated", bytes_, error);
  return absl::OkStatus();
}

void RegionMemory::CloseFd() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

}  // namespace warpline::client
