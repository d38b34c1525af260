// Releases freed memory that the allocator keeps.
#ifndef WARPLINE_SERVER_BASE_FREE_MEMORY_H_
#define WARPLINE_SERVER_BASE_FREE_MEMORY_H_

namespace warpline {

// Returns the freed memory to the kernel. Takes milliseconds for gigabytes. Does nothing with a sanitizer's
// allocator.
void ReturnFreeMemory();

}  // namespace warpline

#endif  // WARPLINE_SERVER_BASE_FREE_MEMORY_H_
