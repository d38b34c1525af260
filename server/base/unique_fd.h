// An owner of one file descriptor.
#ifndef WARPLINE_SERVER_BASE_UNIQUE_FD_H_
#define WARPLINE_SERVER_BASE_UNIQUE_FD_H_

#include <unistd.h>

#include <utility>

namespace warpline {

// Closes its descriptor when it is destroyed. A negative number means that there is none.
class UniqueFd {
 public:
  explicit UniqueFd(int fd = -1) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) Reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~UniqueFd() { Reset(); }

  int get() const { return fd_; }
  bool ok() const { return fd_ >= 0; }
  // The caller owns the descriptor from now on.
  int Release() { return std::exchange(fd_, -1); }
  void Reset(int fd = -1) {
    if (fd_ >= 0) close(fd_);
    fd_ = fd;
  }

 private:
  int fd_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_BASE_UNIQUE_FD_H_
