// Ordinary memory from the operating system.
#ifndef WARPLINE_SERVER_MEMORY_MAPPED_MEMORY_H_
#define WARPLINE_SERVER_MEMORY_MAPPED_MEMORY_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "server/memory/buffer.h"

namespace warpline {

// kHuge: pages of 2 MiB where the system has them, for memory that will be written as a whole. On first use,
// the system fills 16 MiB in 0.3 ms with huge pages, and in 6 ms with small ones
// (docs/benchmarks/2026-11-27-h200-maps.md).
enum class Pages : std::uint8_t { kSmall, kHuge };

// Pages of zeros, each of which takes memory from its first use on; all are given back with the buffer.
// RESOURCE_EXHAUSTED if the system refuses.
absl::StatusOr<Buffer> MapMemory(std::size_t bytes, Pages pages = Pages::kSmall);

// Memory of any content that starts at a multiple of `alignment`: mapped if it is large, and otherwise from
// the process's allocator, as the system limits the number of mappings.
absl::StatusOr<Buffer> AllocateMemory(std::size_t bytes, std::size_t alignment);

}  // namespace warpline

#endif  // WARPLINE_SERVER_MEMORY_MAPPED_MEMORY_H_
