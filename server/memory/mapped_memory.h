// Ordinary memory from the operating system.
#ifndef WARPLINE_SERVER_MEMORY_MAPPED_MEMORY_H_
#define WARPLINE_SERVER_MEMORY_MAPPED_MEMORY_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "server/memory/buffer.h"

namespace warpline {

// kHuge: pages of 2 MiB if the system has them, for memory that will be written completely. On first use, the
// system fills 16 MiB in 0.3 ms with huge pages, and in 6 ms with small ones
// (docs/benchmarks/2026-11-27-h200-maps.md).
enum class Pages : std::uint8_t { kSmall, kHuge };

// Maps pages of zeros, each of which uses memory only after its first use. All are unmapped when the buffer
// is destroyed. RESOURCE_EXHAUSTED if the system refuses.
absl::StatusOr<Buffer> MapMemory(std::size_t bytes, Pages pages = Pages::kSmall);

// Allocates uninitialised memory aligned to `alignment`. Large memory is mapped; the rest comes from the
// process's allocator, because the system limits the number of mappings.
absl::StatusOr<Buffer> AllocateMemory(std::size_t bytes, std::size_t alignment);

}  // namespace warpline

#endif  // WARPLINE_SERVER_MEMORY_MAPPED_MEMORY_H_
