#include "client/src/parallel_copy.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <system_error>
#include <thread>
#include <vector>

namespace warpline::client {
namespace {

// Bytes that one thread copies at a time. Smaller copies do not gain from a second thread.
constexpr std::size_t kChunkBytes = std::size_t{4} << 20;
// One thread does not saturate the memory bandwidth of a server, and more than 8 threads gain nothing.
constexpr std::size_t kMaxThreads = 8;

}  // namespace

void CopyRows(void* to, const void* from, std::size_t bytes, std::size_t row_bytes,
              std::size_t stride_bytes) {
  auto* const target = static_cast<std::byte*>(to);
  const auto* const source = static_cast<const std::byte*>(from);
  std::atomic<std::size_t> next = 0;
  const auto copy_chunks = [&] {
    while (true) {
      std::size_t at = next.fetch_add(kChunkBytes, std::memory_order_relaxed);
      if (at >= bytes) return;
      const std::size_t end = at + std::min(kChunkBytes, bytes - at);
      while (at < end) {
        const std::size_t row = at / row_bytes, within = at % row_bytes;
        const std::size_t size = std::min(row_bytes - within, end - at);
        std::memcpy(target + at, source + row * stride_bytes + within, size);
        at += size;
      }
    }
  };
  const std::size_t cpus = std::max(1u, std::thread::hardware_concurrency());
  const std::size_t count = std::min({cpus, kMaxThreads, (bytes + kChunkBytes - 1) / kChunkBytes});
  std::vector<std::thread> threads;
  try {
    while (threads.size() + 1 < count) threads.emplace_back(copy_chunks);
  } catch (const std::system_error&) {
    // The system has no more threads. The copy takes longer.
  }
  copy_chunks();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace warpline::client
