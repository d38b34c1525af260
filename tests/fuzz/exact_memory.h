// Memory from the allocator with nothing behind it, so that AddressSanitizer sees each access beyond its end.
#ifndef WARPLINE_TESTS_FUZZ_EXACT_MEMORY_H_
#define WARPLINE_TESTS_FUZZ_EXACT_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>

#include "kernels/program.h"
#include "server/memory/buffer.h"

namespace warpline::testing {

// Allocates `bytes` bytes, all of the same value. The memory begins `from_alignment` bytes behind a multiple
// of 256. With another alignment kernels may take other paths, and then round differently.
inline Buffer ExactMemory(std::size_t bytes, std::uintptr_t from_alignment = 0) {
  constexpr std::align_val_t kAlignment{kTensorAlignment};
  auto* const begin = static_cast<std::byte*>(::operator new(from_alignment + bytes, kAlignment));
  const std::shared_ptr<void> owner(begin, [](void* memory) { ::operator delete(memory, kAlignment); });
  std::memset(begin, 0xa5, from_alignment + bytes);
  return Buffer({begin + from_alignment, bytes}, {.kind = Place::Kind::kHost}, owner);
}

}  // namespace warpline::testing

#endif  // WARPLINE_TESTS_FUZZ_EXACT_MEMORY_H_
