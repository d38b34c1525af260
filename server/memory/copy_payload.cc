#include "server/memory/copy_payload.h"

#include <cstring>

#include "server/observe/nvtx.h"

namespace warpline {

void CopyPayload(CopySite& site, std::byte* to, std::span<const std::span<const std::byte>> pieces) {
  const nvtx::Range range(nvtx::Name::kCopy);
  std::size_t total = 0;
  for (std::span<const std::byte> piece : pieces) {
    if (!piece.empty()) std::memcpy(to + total, piece.data(), piece.size());
    total += piece.size();
  }
  site.bytes_.Add(static_cast<double>(total));
}

}  // namespace warpline
