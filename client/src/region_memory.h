// The memory of a region: a mapped memfd.
#ifndef WARPLINE_CLIENT_SRC_REGION_MEMORY_H_
#define WARPLINE_CLIENT_SRC_REGION_MEMORY_H_

#include <sys/types.h>

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace warpline::client {

// A memfd with the properties that RegionService requires, and its mapping, which lasts until this is
// destroyed. A forked child does not inherit the mapping: the parent reuses slices, so the data would change
// in the child.
class RegionMemory {
 public:
  // `bytes` is a multiple of 4096 and above 0. The memory is not allocated yet. ResourceExhausted or
  // Unavailable if the system refuses.
  static absl::StatusOr<std::unique_ptr<RegionMemory>> Create(std::size_t bytes);
  ~RegionMemory();
  RegionMemory(const RegionMemory&) = delete;
  RegionMemory& operator=(const RegionMemory&) = delete;

  // Allocates all of the memory, by several threads if it is large. ResourceExhausted if there is not enough
  // memory.
  absl::Status Populate();

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  // The memfd; -1 once it is closed. The mapping does not need it.
  int fd() const { return fd_; }
  void CloseFd();

 private:
  RegionMemory(int fd, std::byte* data, std::size_t bytes);

  const pid_t process_;
  int fd_;
  std::byte* const data_;
  const std::size_t bytes_;
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_REGION_MEMORY_H_
