// What the allocator keeps of memory that was freed.
#ifndef WARPLINE_SERVER_BASE_FREE_MEMORY_H_
#define WARPLINE_SERVER_BASE_FREE_MEMORY_H_

namespace warpline {

// Gives it back to the kernel. Takes milliseconds for gigabytes; with a sanitizer's allocator, does nothing.
void ReturnFreeMemory();

}  // namespace warpline

#endif  // WARPLINE_SERVER_BASE_FREE_MEMORY_H_
