// File descriptors: owned, and read or written to the end.
#ifndef WARPLINE_CLIENT_CLI_FILE_IO_H_
#define WARPLINE_CLIENT_CLI_FILE_IO_H_

#include <unistd.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace warpline::client {

// Closes what it holds, but for standard input, output and error.
class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  ~File() {
    if (fd_ > STDERR_FILENO) ::close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int fd() const { return fd_; }
  // Some errors of writing are first told here.
  bool Close() { return ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

// Makes an error of errno. InvalidArgument if another path would work: nothing is there, it is a folder, or
// access is not allowed. Unavailable if the machine failed, such as a full disk or a reader that has gone.
absl::Status SystemError(const char* what);

// Reads until `bytes` are here or the file ends; returns how many there were.
absl::StatusOr<std::size_t> ReadUpTo(int fd, void* data, std::size_t bytes);
// The same of a whole file; path "-" is standard input.
absl::StatusOr<std::size_t> ReadFile(const std::string& path, void* data, std::size_t bytes);
absl::Status WriteAll(int fd, std::string_view bytes);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_CLI_FILE_IO_H_
