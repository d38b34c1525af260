// Ordinary memory from the operating system.
#ifndef WARPLINE_SERVER_MEMORY_MAPPED_MEMORY_H_
#define WARPLINE_SERVER_MEMORY_MAPPED_MEMORY_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "server/memory/buffer.h"

namespace warpline {

// Pages of zeros, each of which takes memory from its first use on; all are given back with the buffer.
// RESOURCE_EXHAUSTED if the system refuses.
absl::StatusOr<Buffer> MapMemory(std::size_t bytes);

// Memory of any content that starts at a multiple of `alignment`: mapped if it is large, and otherwise from
// the process's allocator, as the system limits the number of mappings.
absl::StatusOr<Buffer> AllocateMemory(std::size_t bytes, std::size_t alignment);

}  // namespace warpline

#endif  // WARPLINE_SERVER_MEMORY_MAPPED_MEMORY_H_
