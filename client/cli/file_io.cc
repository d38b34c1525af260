#include "client/cli/file_io.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace warpline::client {
namespace {

// Linux transfers at most 0x7ffff000 bytes per call.
constexpr std::size_t kMaxIoBytes = std::size_t{1} << 30;

bool IsOfThePath(int error) {
  switch (error) {
    case EACCES:
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
    case ENOENT:
    case ENOTDIR:
    case ENOTEMPTY:
    case EPERM:
    case EROFS:
      return true;
    default:
      return false;
  }
}

}  // namespace

absl::Status SystemError(const char* what) {
  const int error = errno;
  const std::string text = absl::StrCat(what, ": ", std::strerror(error));
  return IsOfThePath(error) ? absl::InvalidArgumentError(text) : absl::UnavailableError(text);
}

absl::StatusOr<std::size_t> ReadUpTo(int fd, void* data, std::size_t bytes) {
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t got = ::read(fd, static_cast<char*>(data) + done, std::min(bytes - done, kMaxIoBytes));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return SystemError("cannot read");
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

absl::StatusOr<std::size_t> ReadFile(const std::string& path, void* data, std::size_t bytes) {
  const File file(path == "-" ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.fd() < 0) return SystemError("cannot open");
  return ReadUpTo(file.fd(), data, bytes);
}

absl::Status WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd, bytes.data(), std::min(bytes.size(), kMaxIoBytes));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return SystemError("cannot write");
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
  return absl::OkStatus();
}

}  // namespace warpline::client
