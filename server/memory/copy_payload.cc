#include "server/memory/copy_payload.h"

#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

#include "server/observe/nvtx.h"

namespace warpline {
namespace {

using Pieces = std::span<const std::span<const std::byte>>;

constexpr std::size_t kParallelBytes = std::size_t{16} << 20;

void CopySerially(std::byte* to, Pieces pieces) {
  const nvtx::Range range(nvtx::Name::kCopy);
  for (std::span<const std::byte> piece : pieces) {
    if (!piece.empty()) std::memcpy(to, piece.data(), piece.size());
    to += piece.size();
  }
}

}  // namespace

void CopyPayload(CopySite& site, std::byte* to, Pieces pieces) {
  std::size_t total = 0;
  for (std::span<const std::byte> piece : pieces) total += piece.size();
  site.bytes_.Add(static_cast<double>(total));
  const std::size_t threads = std::clamp<std::size_t>(std::thread::hardware_concurrency() / 4, 1, 4);
  if (total < kParallelBytes || threads == 1) return CopySerially(to, pieces);
  // Each thread takes whole pieces until it has its share: pieces of received messages are 64 KiB at most.
  std::vector<std::jthread> workers;
  std::size_t first = 0;
  while (first < pieces.size()) {
    std::size_t last = first;
    std::size_t bytes = 0;
    while (last < pieces.size() && bytes < total / threads) bytes += pieces[last++].size();
    workers.emplace_back(CopySerially, to, pieces.subspan(first, last - first));
    to += bytes;
    first = last;
  }
}

}  // namespace warpline
