#include "client/cli/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <system_error>

#include "client/cli/file_io.h"
#include "kernels/status_macros.h"

namespace warpline::client {
namespace {

using Pieces = std::span<const std::string_view>;
using Stat = struct stat;

constexpr int kMaxLinks = 40;  // Linux's own limit

// Returns the state of the file that `path` leads to, if there is one.
std::optional<Stat> StatOf(const std::string& path) {
  Stat info;
  if (::stat(path.c_str(), &info) != 0) return std::nullopt;
  return info;
}

bool IsSame(const Stat& a, const Stat& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

// Returns the path that the links at the end of `path` lead to, even if no file is there.
std::string Target(std::filesystem::path path) {
  for (int links = 0; links < kMaxLinks; ++links) {
    std::error_code error;
    const std::filesystem::path link = std::filesystem::read_symlink(path, error);
    if (error) break;
    path = path.parent_path() / link;
  }
  return path;
}

absl::Status WriteTo(int fd, Pieces pieces) {
  for (std::string_view piece : pieces) RETURN_IF_ERROR(WriteAll(fd, piece));
  return absl::OkStatus();
}

absl::Status WriteInPlace(const std::string& path, Pieces pieces) {
  File file(::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
  if (file.fd() < 0) return SystemError("cannot open");
  RETURN_IF_ERROR(WriteTo(file.fd(), pieces));
  return file.Close() ? absl::OkStatus() : SystemError("cannot write");
}

// Sets the mode of `fd` and, if permitted, its owner to those of the file that it replaces. For a new file,
// sets the mode that open() would have used; mkostemp uses 0600.
absl::Status TakeMode(int fd, const std::optional<Stat>& replaced) {
  mode_t mode = 0;
  if (replaced) {
    mode = replaced->st_mode & 0777;
    // Only root may change the owner. The mode is set in any case.
    if (::fchown(fd, replaced->st_uid, replaced->st_gid) != 0) errno = 0;
  } else {
    const mode_t mask = ::umask(0);
    ::umask(mask);
    mode = 0666 & ~mask;
  }
  return ::fchmod(fd, mode) == 0 ? absl::OkStatus() : SystemError("cannot set its mode");
}

absl::Status WriteRenamed(const std::string& path, const std::optional<Stat>& replaced, Pieces pieces) {
  // Renaming only needs permission for the folder, so check the file itself.
  if (replaced && ::access(path.c_str(), W_OK) != 0) return SystemError("cannot write");
  std::string temporary = path + ".tmpXXXXXX";
  File file(::mkostemp(temporary.data(), O_CLOEXEC));
  if (file.fd() < 0) return SystemError("cannot create a temporary file beside it");
  absl::Status status = TakeMode(file.fd(), replaced);
  if (status.ok()) status = WriteTo(file.fd(), pieces);
  if (!file.Close() && status.ok()) status = SystemError("cannot write");
  if (status.ok() && std::rename(temporary.c_str(), path.c_str()) != 0) {
    status = SystemError("cannot rename to it");
  }
  if (!status.ok()) ::unlink(temporary.c_str());
  return status;
}

}  // namespace

bool IsStandardOutput(const std::string& path) {
  if (path == "-") return true;
  Stat output;
  const std::optional<Stat> info = StatOf(path);
  return info && ::fstat(STDOUT_FILENO, &output) == 0 && IsSame(*info, output) && !S_ISCHR(output.st_mode);
}

bool IsSameOutput(const std::string& a, const std::string& b) {
  if (IsStandardOutput(a) || IsStandardOutput(b)) return IsStandardOutput(a) && IsStandardOutput(b);
  const std::optional<Stat> there = StatOf(a), other = StatOf(b);
  if (there && other) return IsSame(*there, *other) && !S_ISCHR(there->st_mode);
  if (there || other) return false;
  const auto full = [](const std::string& path) {
    std::error_code error;
    return std::filesystem::weakly_canonical(std::filesystem::absolute(Target(path), error), error);
  };
  return full(a) == full(b);
}

bool IsTerminal(const std::string& path) {
  if (::isatty(STDOUT_FILENO) != 1) return false;
  Stat output;
  const std::optional<Stat> info = StatOf(path);
  return path == "-" || (info && ::fstat(STDOUT_FILENO, &output) == 0 && IsSame(*info, output));
}

absl::Status WriteFile(const std::string& path, Pieces pieces) {
  if (IsStandardOutput(path)) return WriteTo(STDOUT_FILENO, pieces);
  const std::optional<Stat> there = StatOf(path);
  if (!there && errno != ENOENT) return SystemError("cannot open");
  if (!there) return WriteRenamed(Target(path), std::nullopt, pieces);
  if (!S_ISREG(there->st_mode)) return WriteInPlace(path, pieces);
  const std::string target = Target(path);
  const std::optional<Stat> reached = StatOf(target);
  // A link in /proc/self/fd can lead to a file that no longer has this name.
  if (!reached || !IsSame(*there, *reached)) return WriteInPlace(path, pieces);
  return WriteRenamed(target, there, pieces);
}

}  // namespace warpline::client
