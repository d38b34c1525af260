// Copies of large arrays, by several threads.
#ifndef WARPLINE_CLIENT_SRC_PARALLEL_COPY_H_
#define WARPLINE_CLIENT_SRC_PARALLEL_COPY_H_

#include <cstddef>

namespace warpline::client {

// Copies rows of `row_bytes` bytes from `from`, where they are `stride_bytes` apart, to `to`, where they are
// contiguous. `bytes` is the total to copy. Uses several threads if that is faster. The two buffers must not
// overlap.
void CopyRows(void* to, const void* from, std::size_t bytes, std::size_t row_bytes, std::size_t stride_bytes);

inline void CopyBytes(void* to, const void* from, std::size_t bytes) {
  CopyRows(to, from, bytes, bytes, bytes);
}

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_PARALLEL_COPY_H_
