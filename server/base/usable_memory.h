// How much memory of the host this process can really use.
#ifndef WARPLINE_SERVER_BASE_USABLE_MEMORY_H_
#define WARPLINE_SERVER_BASE_USABLE_MEMORY_H_

#include <cstddef>
#include <string>

namespace warpline {

// The machine's memory, or its cgroup's limit if that is less: a container sees the memory of its host, and
// only the limit tells what it was given. Unit: bytes.
std::size_t UsableMemoryBytes();

// The part of the usable memory that others leave free at present. It is the memory that the machine reports
// as available, if that is less.
std::size_t AvailableMemoryBytes();

// The bytes that a cgroup may use, from the text of memory.max ("1073741824", "max"); 0 if there is no limit.
std::size_t BytesOfLimit(const std::string& memory_max);

}  // namespace warpline

#endif  // WARPLINE_SERVER_BASE_USABLE_MEMORY_H_
