// How much memory of the host this process can really use.
#ifndef WARPLINE_SERVER_BASE_USABLE_MEMORY_H_
#define WARPLINE_SERVER_BASE_USABLE_MEMORY_H_

#include <cstddef>
#include <string>

namespace warpline {

// Returns the machine's memory, or its cgroup's limit if that is less. A container sees the memory of its
// host; only the limit shows what the container may use. Unit: bytes.
std::size_t UsableMemoryBytes();

// Returns how much of the usable memory is free at present: the memory that the machine reports as available,
// if that is less than the usable memory.
std::size_t AvailableMemoryBytes();

// Returns the bytes that a cgroup may use, from the text of memory.max ("1073741824", "max"); 0 if there is
// no limit.
std::size_t BytesOfLimit(const std::string& memory_max);

}  // namespace warpline

#endif  // WARPLINE_SERVER_BASE_USABLE_MEMORY_H_
