// Memory that a client has made and handed over by its descriptor.
#ifndef WARPLINE_SERVER_STORE_SHARED_MEMORY_H_
#define WARPLINE_SERVER_STORE_SHARED_MEMORY_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/memory/buffer.h"

namespace warpline {

// Returns whether the descriptor is a memfd or its like. Unlike any other query of a descriptor, and unlike
// closing it, this call never waits for whoever made it.
bool CanBeSealed(int fd);

// OK if the descriptor is a memfd of `bytes` bytes whose owner can no longer do harm by it to a process that
// has mapped it: its size is sealed, so that no access of ours meets its end (SIGBUS), and its blocks are
// allocated. INVALID_ARGUMENT, saying what is wrong, otherwise; the text begins with "the descriptor". Gives
// back blocks that lie behind its end.
absl::Status CheckShareable(int fd, std::size_t bytes);

// Maps it, page by page present. CheckShareable has accepted it. The mapping lives without the descriptor, is
// not inherited by children and is no part of core dumps. RESOURCE_EXHAUSTED if the system refuses.
absl::StatusOr<Buffer> MapShared(int fd, std::size_t bytes);

}  // namespace warpline

#endif  // WARPLINE_SERVER_STORE_SHARED_MEMORY_H_
