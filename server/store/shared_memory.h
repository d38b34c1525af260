// Memory that a client has created and passed to the server as a descriptor.
#ifndef WARPLINE_SERVER_STORE_SHARED_MEMORY_H_
#define WARPLINE_SERVER_STORE_SHARED_MEMORY_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/memory/buffer.h"

namespace warpline {

// Returns whether the descriptor is a memfd or similar. Unlike all other queries of a descriptor, and unlike
// closing it, this call never waits for the process that made it.
bool CanBeSealed(int fd);

// OK if the descriptor is a memfd of `bytes` bytes that its owner can no longer use to harm a process that
// has mapped it. Its size is sealed, so no access of ours goes beyond its end (SIGBUS), and its blocks are
// allocated. Otherwise INVALID_ARGUMENT, saying what is wrong; the text begins with "the descriptor". Frees
// blocks after the end.
absl::Status CheckShareable(int fd, std::size_t bytes);

// Maps the memory, with all pages present. CheckShareable must have accepted the descriptor. The mapping does
// not need the descriptor any more, is not inherited by child processes and not included in core dumps.
// RESOURCE_EXHAUSTED if the system refuses.
absl::StatusOr<Buffer> MapShared(int fd, std::size_t bytes);

}  // namespace warpline

#endif  // WARPLINE_SERVER_STORE_SHARED_MEMORY_H_
