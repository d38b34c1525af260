// File descriptors with ownership, and complete reads and writes.
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

// Closes the descriptor on destruction, except for standard input, output and error.
class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  ~File() {
    if (fd_ > STDERR_FILENO) ::close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int fd() const { return fd_; }
  // Some write errors are reported only here.
  bool Close() { return ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

// Makes an error from errno. InvalidArgument if another path could work: the file does not exist, it is a
// folder, or access is denied. Unavailable if the machine failed, for example with a full disk or a closed
// pipe.
absl::Status SystemError(const char* what);

// Reads until `bytes` bytes are read or the file ends. Returns the number of bytes read.
absl::StatusOr<std::size_t> ReadUpTo(int fd, void* data, std::size_t bytes);
// Same for a whole file; path "-" is standard input.
absl::StatusOr<std::size_t> ReadFile(const std::string& path, void* data, std::size_t bytes);
absl::Status WriteAll(int fd, std::string_view bytes);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_CLI_FILE_IO_H_
